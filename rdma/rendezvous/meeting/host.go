package meeting

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
)

// identify returns what tells hosts apart. Two processes can share memory where
// they are on the same machine, since it was booted, find each other's abstract
// sockets (network namespace), know each other's process numbers (process
// namespace), and have the same user. The name of the host is for sandboxes that
// have the same namespaces everywhere; it is never resolved. One that is alone
// shares memory with nobody.
func identify(name string, alone bool) (host, network string) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	net, nerr := os.Readlink("/proc/self/ns/net")
	pid, perr := os.Readlink("/proc/self/ns/pid")
	users, _ := os.ReadFile("/proc/self/uid_map") // some kernels have no namespaces of users
	if err != nil || nerr != nil || perr != nil {
		boot = make([]byte, 16) // a host of its own
		_, _ = rand.Read(boot)
	}
	machine := strings.TrimSpace(string(boot))
	host = digest(machine, net, pid, fmt.Sprint(outside(string(users), os.Geteuid())), name)
	if alone {
		host = newJob()
	}
	return host, digest(machine, net, name)
}

// outside is what a user is called outside this process's namespace of users, so
// that containers of one user know each other, and those of several do not. uidMap
// has lines of a first number inside, the one outside that it is, and how many.
func outside(uidMap string, user int) int {
	for line := range strings.Lines(uidMap) {
		var inner, outer, count int
		if _, err := fmt.Sscan(line, &inner, &outer, &count); err == nil && inner <= user && user-inner < count {
			return outer + user - inner
		}
	}
	return user
}

func digest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:16])
}

// hostName is for messages.
func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "?"
	}
	return printable(name, maxWord)
}

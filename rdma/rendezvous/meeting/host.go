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
// have the same namespaces everywhere; it is never resolved.
func identify(name string) (host, network string) {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	net, nerr := os.Readlink("/proc/self/ns/net")
	pid, perr := os.Readlink("/proc/self/ns/pid")
	if err != nil || nerr != nil || perr != nil {
		boot = make([]byte, 16) // a host of its own
		_, _ = rand.Read(boot)
	}
	machine := strings.TrimSpace(string(boot))
	return digest(machine, net, pid, fmt.Sprint(os.Geteuid()), name), digest(machine, net, name)
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

package meeting

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// holder names the process that listens at a port, as far as /proc tells.
func holder(port uint16) string {
	inode := ""
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		if f, err := os.Open(table); err == nil {
			for s := bufio.NewScanner(f); s.Scan() && inode == ""; {
				inode = listening(s.Text(), port)
			}
			f.Close()
		}
	}
	if inode == "" {
		return "another process"
	}
	link := "socket:[" + inode + "]"
	descriptors, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, d := range descriptors {
		if to, err := os.Readlink(d); err == nil && to == link {
			pid := strings.Split(d, "/")[2]
			name, _ := os.ReadFile("/proc/" + pid + "/comm")
			return fmt.Sprintf("process %s (%s)", pid, printable(strings.TrimSpace(string(name)), maxWord))
		}
	}
	return "a process of another user or container"
}

// listening is the inode of the socket that a line of /proc/net/tcp describes, if
// that one listens at port.
func listening(line string, port uint16) string {
	const listen = "0A"
	f := strings.Fields(line)
	if len(f) < 10 || f[3] != listen {
		return ""
	}
	_, p, _ := strings.Cut(f[1], ":")
	if n, err := strconv.ParseUint(p, 16, 16); err != nil || n != uint64(port) {
		return ""
	}
	return f[9]
}

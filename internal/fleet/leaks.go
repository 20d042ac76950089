package fleet

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Holdings is what of the kernel's this process holds: descriptors, mappings of
// memory without a name, and goroutines of the transports.
func Holdings() (all []string) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil {
			all = append(all, fmt.Sprintf("descriptor %s: %s", e.Name(), to))
		}
	}
	maps, _ := os.ReadFile("/proc/self/maps")
	for line := range strings.Lines(string(maps)) {
		if strings.Contains(line, "memfd:malt") {
			all = append(all, "mapping "+strings.TrimSpace(line))
		}
	}
	stack := make([]byte, 1<<20)
	stack = stack[:runtime.Stack(stack, true)]
	for g := range strings.SplitSeq(string(stack), "\n\n") {
		if !strings.Contains(g, "fleet.Holdings") && !strings.Contains(g, "testing.tRunner") {
			if entry := entryOf(g); entry != "" {
				all = append(all, entry)
			}
		}
	}
	return all
}

// entryOf names a goroutine of the transports by its number and the outermost of
// their functions, which stay the same while it runs; "" for any other.
func entryOf(stack string) (name string) {
	for line := range strings.Lines(stack) {
		if strings.HasPrefix(line, "malt/rdma/rendezvous.") || strings.HasPrefix(line, "malt/rdma/shm.(") {
			name, _, _ = strings.Cut(line, "(0x")
		}
	}
	if name == "" {
		return ""
	}
	number, _, _ := strings.Cut(stack, " [")
	return number + " in " + name
}

// Leaks is what is held now and was not before. What is just being given back is
// waited for.
func Leaks(before []string) (leaks []string) {
	for end := time.Now().Add(5 * time.Second); ; runtime.Gosched() {
		leaks = slices.DeleteFunc(Holdings(), func(h string) bool { return slices.Contains(before, h) })
		if len(leaks) == 0 || time.Now().After(end) {
			return leaks
		}
	}
}

// Sockets lists the abstract sockets on this machine that belong to a store.
func Sockets(store string) (names []string) {
	b, _ := os.ReadFile("/proc/net/unix")
	job := "malt-" + strings.TrimPrefix(store, "local:") + "-"
	for line := range strings.Lines(string(b)) {
		if i := strings.Index(line, "@"); i >= 0 && strings.Contains(line, job) {
			names = append(names, strings.TrimSpace(line[i:]))
		}
	}
	return names
}

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
// memory without a name, and goroutines, with what they are to the transports.
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
			all = append(all, entryOf(g))
		}
	}
	return all
}

// entryOf names a goroutine by its number and the outermost function of the
// transports in it, "" for any other goroutine, and for one that has not run yet.
func entryOf(stack string) string {
	name := ""
	for line := range strings.Lines(stack) {
		if strings.HasPrefix(line, "malt/rdma/rendezvous.") || strings.HasPrefix(line, "malt/rdma/shm.(") {
			name, _, _ = strings.Cut(line, "(0x")
		}
	}
	number, _, _ := strings.Cut(stack, " [")
	return number + " in " + name
}

// Leaks is what is held now and was not before: descriptors, mappings, and
// goroutines of the transports. What is just being given back is waited for.
func Leaks(before []string) []string { return LeaksBeyond(before, 0) }

// LeaksBeyond is Leaks where so many may be held: more are waited for.
func LeaksBeyond(before []string, most int) (leaks []string) {
	was := map[string]bool{}
	for _, h := range before {
		number, _, _ := strings.Cut(h, " in ")
		was[h], was[number] = true, true
	}
	for end := time.Now().Add(Patience); ; runtime.Gosched() {
		leaks = slices.DeleteFunc(Holdings(), func(h string) bool {
			number, name, _ := strings.Cut(h, " in ")
			return was[h] || strings.HasPrefix(h, "goroutine ") && (name == "" || was[number])
		})
		if len(leaks) <= most || time.Now().After(end) {
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

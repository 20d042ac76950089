package rendezvous

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma/internal/mem"
)

// known is the table that the fork handler closes in a child.
func known() map[int]bool {
	k := map[int]bool{}
	table := mem.Descriptors()
	for i := range table {
		if fd := table[i].Load() - 1; fd >= 0 {
			k[int(fd)] = true
		}
	}
	return k
}

// unknownSince counts the descriptors that are open and were not before, and
// lists those that the fork handler does not know.
func unknownSince(before []string) (opened int, unknown []string) {
	for _, held := range fleet.Holdings() {
		name, is := strings.CutPrefix(held, "descriptor ")
		number, target, _ := strings.Cut(name, ": ")
		fd, err := strconv.Atoi(number)
		if !is || err != nil || slices.Contains(before, held) || strings.HasPrefix(target, "/proc/") {
			continue
		}
		opened++
		if !known()[fd] {
			unknown = append(unknown, held)
		}
	}
	return opened, unknown
}

// Whatever a Host opens, a forked child closes: else the child would hold the
// rank's name, and its memory, after the rank has ended.
func TestForkHandlerKnowsEveryDescriptor(t *testing.T) {
	warm := meet(t, 1)[0]
	if err := warm.Close(); err != nil { // Go's own descriptors are there from now on
		t.Fatal(err)
	}
	before, outside := known(), fleet.Holdings()
	hosts := meet(t, 3)
	if _, err := hosts[0].Announce("x", Region{Readers: []int{1}, Files: []*mem.File{file(t, 100, 1)}}); err != nil {
		t.Fatal(err)
	}
	// The last answers may be on their way out: they are forgotten, then closed.
	opened, unknown := unknownSince(outside)
	for end := time.Now().Add(fleet.Patience); len(unknown) > 0 && time.Now().Before(end); {
		opened, unknown = unknownSince(outside)
	}
	if len(unknown) > 0 {
		t.Errorf("the fork handler does not know %q", unknown)
	}
	if opened < 3*2+2 { // a socket and an event each, the page, the file
		t.Errorf("only %d descriptors were found: the test looks in the wrong place", opened)
	}
	for _, h := range hosts {
		if err := h.Close(); err != nil {
			t.Error(err)
		}
	}
	for fd := range known() {
		if !before[fd] {
			t.Errorf("descriptor %d is closed, and the fork handler would close whatever has its number by then", fd)
		}
	}
}

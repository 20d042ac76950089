package rendezvous

import (
	"fmt"
	"slices"
	"sync"

	"malt/rdma"
	"malt/rdma/internal/mem"
)

// Region is memory that a rank announces under a name.
type Region struct {
	Text    string      // what it is, for the reader to compare
	Readers []int       // the ranks that may fetch it
	Files   []*mem.File // at most 8
}

// Announcement is a Region with those who have yet to fetch it. Its descriptors
// are open until nobody can need them: each reader has confirmed that it has
// mapped them, has left, or is dead.
type Announcement struct {
	Region
	h       *Host
	name    string
	waiting []int // readers that have not taken it
	sending int   // readers that have, and have not confirmed yet
	over    bool  // withdrawn
}

// regions is what this rank has announced, oldest first. There may be several of
// one name: a reader gets each once, in their order.
type regions struct {
	mu      sync.Mutex
	byName  map[string][]*Announcement
	changed chan struct{} // closed and forgotten when there may be something new to take
	closed  bool
}

// Announce lets the readers fetch the region from now on. It takes over the
// files' descriptors, also when it fails.
func (h *Host) Announce(name string, r Region) (*Announcement, error) {
	a := &Announcement{Region: r, h: h, name: name}
	if err := h.announce(a); err != nil {
		a.close()
		return nil, fmt.Errorf("announcing %.100s: %w", name, err)
	}
	return a, nil
}

func (h *Host) announce(a *Announcement) error {
	if len(a.Files) > maxFiles || len(a.name) > maxString || len(a.Text) > maxString {
		return fmt.Errorf("a name of %d bytes, a text of %d, %d files; at most %d, %d and %d",
			len(a.name), len(a.Text), len(a.Files), maxString, maxString, maxFiles)
	}
	if err := h.CheckRanks("readers", a.Readers); err != nil {
		return err
	}
	h.sweep()
	for _, rank := range a.Readers {
		if h.State(rank) == nil {
			a.waiting = append(a.waiting, rank)
		}
	}
	g := &h.regions
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return rdma.ErrClosed
	}
	if g.byName == nil {
		g.byName = map[string][]*Announcement{}
	}
	g.byName[a.name] = append(g.byName[a.name], a)
	g.drop(a)
	g.news()
	return nil
}

// CheckRanks fails unless each is another rank of this machine, named once; what says
// what they are.
func (h *Host) CheckRanks(what string, ranks []int) error {
	for _, rank := range ranks {
		if !h.member(rank) && rank >= 0 && rank < h.cfg.Size {
			return fmt.Errorf("%s %v: rank %d is on another machine", what, ranks, rank)
		}
	}
	return rdma.CheckPeers(what, ranks, h.cfg.Rank, h.cfg.Size)
}

// Withdraw ends the announcement: who has not fetched it by now waits for the
// next of that name.
func (a *Announcement) Withdraw() {
	g := &a.h.regions
	g.mu.Lock()
	defer g.mu.Unlock()
	a.waiting, a.over = nil, true
	g.drop(a)
}

// Announced is the first File of the newest announcement of that name, with a descriptor of
// its own; nil where none is left that another rank has yet to fetch.
func (h *Host) Announced(name string) (*mem.File, error) {
	g := &h.regions
	g.mu.Lock()
	defer g.mu.Unlock()
	all := g.byName[name]
	if len(all) == 0 || all[len(all)-1].over {
		return nil, nil
	}
	return all[len(all)-1].Files[0].Again()
}

func (a *Announcement) close() {
	for _, f := range a.Files {
		f.Close()
	}
}

// claim finds the oldest region for a reader; the caller ends that with endClaim.
// When there is none (yet) the channel is closed once it is worth asking again.
func (g *regions) claim(name string, reader int) (*Announcement, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, a := range g.byName[name] {
		if i := slices.Index(a.waiting, reader); i >= 0 && !g.closed {
			a.waiting = slices.Delete(a.waiting, i, i+1)
			a.sending++
			return a, nil
		}
	}
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return nil, g.changed
}

// endClaim ends what claim began. A reader that did not confirm can take it again.
func (g *regions) endClaim(a *Announcement, reader int, confirmed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a.sending--
	if !confirmed && !a.over {
		a.waiting = append(a.waiting, reader)
		g.news()
	}
	g.drop(a)
}

// news wakes those whom claim has found nothing for. g.mu is held.
func (g *regions) news() {
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
}

// drop forgets a if nobody can need it any more. g.mu is held.
func (g *regions) drop(a *Announcement) {
	if len(a.waiting) != 0 || a.sending != 0 {
		return
	}
	a.close()
	rest := slices.DeleteFunc(g.byName[a.name], func(b *Announcement) bool { return a == b })
	if g.byName[a.name] = rest; len(rest) == 0 {
		delete(g.byName, a.name)
	}
}

// sweep stops waiting for readers that have left or are dead.
func (h *Host) sweep() {
	g := &h.regions
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, all := range g.byName {
		for _, a := range slices.Clone(all) {
			a.waiting = slices.DeleteFunc(a.waiting, func(r int) bool { return h.State(r) != nil })
			g.drop(a)
		}
	}
}

// close gives all descriptors back. Nothing is being sent any more.
func (g *regions) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, all := range g.byName {
		for _, a := range all {
			a.close()
		}
	}
	g.byName = nil
}

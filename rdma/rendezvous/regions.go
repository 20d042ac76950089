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

// announced is a Region with those who have yet to fetch it. Its descriptors are
// open until nobody can need them: each reader has confirmed that it has mapped
// them, has left, or is dead.
type announced struct {
	Region
	waiting []int // readers that have not confirmed
	sending int   // answers under way
}

func (a *announced) close() {
	for _, f := range a.Files {
		f.Close()
	}
}

// regions is what this rank has announced.
type regions struct {
	mu      sync.Mutex
	byName  map[string]*announced
	changed chan struct{} // closed and replaced at each announcement
	closed  bool
}

// Announce lets the readers fetch the region from now on. It takes over the
// files' descriptors, also when it fails. A name can be used again when all
// readers have fetched what it stood for.
func (h *Host) Announce(name string, r Region) (err error) {
	a := &announced{Region: r}
	defer func() {
		if err != nil {
			a.close()
		}
	}()
	if len(r.Files) > maxFiles || len(name) > maxString || len(r.Text) > maxString {
		return fmt.Errorf("rendezvous: announcing %.40q: a name of %d bytes, a text of %d, %d files; at most %d, %d and %d",
			name, len(name), len(r.Text), len(r.Files), maxString, maxString, maxFiles)
	}
	for i, rank := range r.Readers {
		if rank < 0 || rank >= h.cfg.Size || rank == h.cfg.Rank || slices.Contains(r.Readers[:i], rank) {
			return fmt.Errorf("rendezvous: announcing %s: readers %v of rank %d; each must be another rank below %d, named once",
				name, r.Readers, h.cfg.Rank, h.cfg.Size)
		}
	}
	h.sweep()
	g := &h.regions
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return rdma.ErrClosed
	}
	if _, twice := g.byName[name]; twice {
		return fmt.Errorf("rendezvous: %s has been announced already, and not every reader has fetched it; use another name", name)
	}
	for _, rank := range r.Readers {
		if h.State(rank) == nil {
			a.waiting = append(a.waiting, rank)
		}
	}
	if len(a.waiting) == 0 {
		a.close()
		return nil
	}
	if g.byName == nil {
		g.byName = map[string]*announced{}
	}
	g.byName[name] = a
	if g.changed != nil {
		close(g.changed)
		g.changed = nil
	}
	return nil
}

// take finds the region for a reader; the caller gives it back with settle. When
// it is not there (yet) the channel is closed at the next announcement.
func (g *regions) take(name string, reader int) (*announced, <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.byName[name]; a != nil && !g.closed && slices.Contains(a.waiting, reader) {
		a.sending++
		return a, nil
	}
	if g.changed == nil {
		g.changed = make(chan struct{})
	}
	return nil, g.changed
}

// settle ends what take began; confirmed when the reader has what it needs.
func (g *regions) settle(name string, a *announced, reader int, confirmed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a.sending--
	if confirmed {
		a.waiting = slices.DeleteFunc(a.waiting, func(r int) bool { return r == reader })
	}
	g.drop(name, a)
}

// drop forgets a region that nobody can need any more.
func (g *regions) drop(name string, a *announced) {
	if len(a.waiting) == 0 && a.sending == 0 {
		a.close()
		delete(g.byName, name)
	}
}

// sweep stops waiting for readers that have left or are dead.
func (h *Host) sweep() {
	g := &h.regions
	g.mu.Lock()
	defer g.mu.Unlock()
	for name, a := range g.byName {
		a.waiting = slices.DeleteFunc(a.waiting, func(r int) bool { return h.State(r) != nil })
		g.drop(name, a)
	}
}

// close gives all descriptors back. Nothing is being sent any more.
func (g *regions) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
	for _, a := range g.byName {
		a.close()
	}
	g.byName = nil
}

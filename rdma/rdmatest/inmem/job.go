package inmem

import (
	"errors"
	"slices"
	"sync"
	"sync/atomic"

	"malt/rdma"
	"malt/rdma/internal/bell"
)

// job is what the ranks of one New have in common. mu guards the tables; the
// bytes of boxes and words are guarded by their own protocols.
type job struct {
	size  int
	near  [][]int // by rank
	mu    sync.Mutex
	boxes map[boxName]*publication
	words map[string]*wordSet

	bells bell.Set
	ranks []rankState

	least atomic.Int64              // ranks with which the job goes on; 0: it ends with the first death
	view  atomic.Pointer[rdma.View] // under mu, when it is changed
}

type boxName struct {
	sender int
	name   string
}

// publication is a box that can be subscribed to.
type publication struct {
	spec    rdma.Spec
	readers []int
	taken   []bool // who has subscribed, ever
	open    []bool // and not closed again
	left    bool   // closed by the sender: nobody else can subscribe

	// The box itself, not guarded by job.mu. A slot is nil until it is reserved,
	// which the sender does before any latest or head word leads there.
	control []byte
	slots   [][]byte
}

// rankState is nil while the rank takes part, then for ever rdma.ErrLeft or a
// *rdma.PeerError.
type rankState struct{ end atomic.Pointer[error] }

// all is every rank.
func (j *job) all() []int {
	ranks := make([]int, j.size)
	for r := range ranks {
		ranks[r] = r
	}
	return ranks
}

func (j *job) state(rank int) error {
	if end := j.ranks[rank].end.Load(); end != nil {
		return *end
	}
	if !j.view.Load().Has(rank) { // told before its end
		return killed(rank)
	}
	return nil
}

func killed(rank int) error {
	return &rdma.PeerError{Rank: rank, Kind: rdma.Ended, Err: errors.New("killed")}
}

// kill ends rank as the kernel ends a process. The view is told first: who sees the death
// sees that.
func (j *job) kill(rank int) {
	j.mu.Lock()
	if old := j.view.Load(); j.least.Load() > 0 && old.Has(rank) && int64(len(old.Ranks)) > j.least.Load() {
		left := slices.DeleteFunc(slices.Clone(old.Ranks), func(r int) bool { return r == rank })
		j.view.Store(&rdma.View{Generation: old.Generation + 1, Ranks: left})
	}
	j.mu.Unlock()
	j.finish(rank, killed(rank))
}

// finish sets the final state of rank, unless it has one, and tells everybody.
func (j *job) finish(rank int, end error) {
	if j.ranks[rank].end.CompareAndSwap(nil, &end) {
		j.bells.RingAll()
	}
}

// slot is box.Place.Slot of both ends.
func (p *publication) slot(i int) []byte { return p.slots[i] }

// publish announces a box. A name is free again when it is closed.
func (j *job) publish(sender int, name string, p *publication) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	key := boxName{sender, name}
	if old := j.boxes[key]; old != nil && !old.left {
		return errors.New("this rank has published that name already; close it first, or take another")
	}
	j.boxes[key] = p
	return nil
}

func (j *job) unpublish(p *publication) {
	j.mu.Lock()
	defer j.mu.Unlock()
	p.left = true
}

// lookup finds the box of sender that rank reads, nil if there is none yet that
// it has not had before. j.mu is held.
func (j *job) lookup(sender int, name string, rank int) (p *publication, index int, err error) {
	p = j.boxes[boxName{sender, name}]
	if p == nil {
		return nil, 0, nil
	}
	i := slices.Index(p.readers, rank)
	switch {
	case i < 0:
	case p.open[i]:
		return nil, 0, errors.New("this rank has subscribed to it already; close that Inbox first")
	case !p.left && !p.taken[i]:
		return p, i, nil
	}
	return nil, 0, nil
}

package shared

import (
	"context"
	"slices"

	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/rdma"
)

// Route is the route of one vector, and its last sync.
type Route struct {
	core.BoxesOnly // for what it does not need
	o              core.Boxed
	rank           int
	all            []int // among which the vector was made, ascending
	bytes          int   // of the array
	small          bool  // where this rank decides about a sync it folds for all
	long           bool  // the others are woken before
	shared         rdma.Shared

	op    reduce.Op
	clock uint64
	state state // as far as this rank has seen
	late  []int

	syncs, calls pass // the last sync, and the last call
	srcs         [][]byte
	from         int // index of what has brought NaN or infinity into the last span

	allReduce allReduce
	leftAt    uint64 // an allreduce given up, for which others may still fold; 0: none
}

var _ core.Route = (*Route)(nil)

// smallBytes is up to where it is faster to have one rank fold a whole array than to wait for
// all to fold their spans. Where ranks take turns on cores they wait for longer, and no more spans than
// there are cores are folded at a time: crowdedBytes is for two cores.
const (
	smallBytes   = 8 << 10
	crowdedBytes = 64 << 10
)

// longBytes are those of a span from which on it takes longer to fold it than to wake the others,
// who have their own to fold.
const longBytes = 128 << 10

// New makes the memory of an array of so many bytes, of its card, and, where the job goes
// on when ranks die, of a spare block and a view.
func New(o core.Boxed, bytes int) (*Route, error) {
	room := spareAt(bytes)
	if o.Survives() {
		room += core.BlockBytes + viewBytes(o.Size())
	}
	m, err := o.Transport().Share(o.BoxName(), room, words)
	if err != nil {
		return nil, err
	}
	return on(o, m, bytes, bytes <= smallFor(o.Transport())), nil
}

func on(o core.Boxed, m rdma.Shared, bytes int, small bool) *Route {
	return &Route{
		o: o, rank: o.Rank(), bytes: bytes, shared: m, small: small, long: bytes >= longBytes*o.Size(),
		syncs: pass{whole: -1},
	}
}

// smallFor is up to how many bytes an array of the near ranks is small.
func smallFor(t rdma.Transport) int {
	if c, ok := t.(rdma.Cored); ok {
		if cores := c.Cores(); cores < len(t.Near()) {
			return max(smallBytes, crowdedBytes/max(1, cores-1))
		}
	}
	return smallBytes
}

func (r *Route) Memory() []byte                 { return r.shared.Bytes(r.rank) }
func (r *Route) Join(ctx context.Context) error { return r.shared.Join(ctx) }
func (r *Route) Among(ranks []int)              { r.all = slices.Clone(ranks) }

// Close: a wait for this rank looks again.
func (r *Route) Close() error {
	r.shared.Set(wordClosed, 1)
	r.shared.Ring()
	return r.shared.Close()
}

// home is the rank that has the words which decide. If it dies, they are still there.
func (r *Route) home() int { return r.all[0] }

// Moved counts what the other rank folds of this rank's array, and all that this rank
// has folded.
func (r *Route) Moved(rank int) int {
	if !slices.Contains(r.syncs.ranks, rank) {
		return 0
	}
	lo, hi := r.span(&r.syncs, r.rank)
	from, to := r.span(&r.syncs, rank)
	return hi - lo + to - from
}

// Writers are the ranks that have yet to fold for an allreduce that this one gave up.
func (r *Route) Writers(late []int) []int {
	if r.leftAt > 0 {
		if late = r.unfolded(&r.calls, late); len(late) == 0 {
			r.leftAt = 0
		}
	}
	return late
}

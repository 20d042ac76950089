package boxes

import (
	"malt/libmalt/internal/core"
	"malt/libmalt/rule"
	"malt/rdma"
)

// counting is how updates count that have been taken: each once, or as totals do.
type counting interface {
	// take takes what the rule asks for from one sender, other than of a queue; look, for
	// statistics, what the next gather would find.
	take(o *gathering, src *source) error
	look(src *source)
	// aged is called when all have been taken, by that rule.
	aged(r rule.Rule)
	// fresh tells whether no earlier fold has counted the update of that seq; read is the
	// last that one has. folded is called after a fold of the held one.
	fresh(seq, read uint64) bool
	folded(src *source)

	// keep is called where the held update cannot stay in its slot.
	keep(src *source)
	// skip says that a collective call has made seen what the ranks had sent when they were
	// at these heads; settled is as of a codec.
	skip(heads []uint64)
	settled(summed []int)

	// stand is where this rank is with a rank that is left out, whose box may be closed (nil), and kept
	// the update that counts of it, where that is no longer in the box.
	stand(rank int, src *source) (core.Stand, bool)
	kept(rank int) rdma.Update

	// age and share are as of an object.
	age() uint64
	share(weight float64) (data []byte, since uint64)
}

// once counts each update in one fold.
type once struct{ b *Boxes }

func (c once) take(o *gathering, src *source) error {
	if c.b.ch.spec.Mode == rdma.ByClock {
		return o.takeAt(src)
	}
	return o.takeNewest(src)
}

func (once) look(src *source) {
	if u, ok, err := src.inbox.Next(); ok && err == nil {
		src.held, src.has = u, true
	}
}

func (once) aged(rule.Rule)                   {}
func (once) fresh(uint64, uint64) bool        { return true }
func (once) folded(src *source)               { src.release() }
func (once) keep(*source)                     {}
func (c once) skip(heads []uint64)            { c.b.ch.skip(heads) }
func (once) settled([]int)                    {}
func (once) kept(int) (u rdma.Update)         { return u }
func (once) age() uint64                      { return 0 }
func (c once) share(float64) ([]byte, uint64) { return c.b.Data, 0 }

func (once) stand(int, *source) (at core.Stand, ok bool) { return at, false }

package rendezvous

import (
	"math/bits"

	"malt/rdma"
	"malt/rdma/internal/mem"
)

// The view is who takes part. One word of the page names it:
//
//	generation<<16 | rank<<1 | set
//
// Its members are that set of the rank's record, a bitmap. In the first generation
// they are all ranks, without a bitmap.
//
//	propose: v = view; members of v less all that are dead: the same: return
//	  fill a set of the own record that v does not name; CAS(view, v, next); again if it fails
//	read: v = view; copy the bitmap; view != v: again
//
// A set is filled while the word does not name it, and generations are not used twice:
// so who finds the same word again has copied the set that the word means. A proposer
// that dies before the swap has done nothing. One that is stopped there keeps nobody
// from proposing the same in its own record.
//
// Who looks for a death and finds one that the view does not know proposes itself
// (Host.State): it does not matter if the rank that noticed is killed before it has.

const (
	viewBits  = 16 // of the rank and its set
	firstView = 1 << viewBits
)

// view is changed by compare-and-swap, by whoever notices a death.
func (p page) view() *mem.Word { return mem.WordAt(p, offView) }

// set is word i of one of a rank's two bitmaps. Written by the rank, while view does not
// name it.
func (p page) set(rank, which, i int) *mem.Word {
	return p.member(rank, offSets+which*setBytes+8*i)
}

// bitmap is a set of ranks.
type bitmap []uint64

func newBitmap(size int) bitmap { return make(bitmap, (size+63)/64) }

func (b bitmap) has(rank int) bool { return b[rank/64]>>(rank%64)&1 != 0 }
func (b bitmap) add(rank int)      { b[rank/64] |= 1 << (rank % 64) }
func (b bitmap) remove(rank int)   { b[rank/64] &^= 1 << (rank % 64) }

func (b bitmap) count() (n int) {
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}

// members copies the set of ranks that v names into b; false where the view has changed.
func (p page) members(v uint64, b bitmap, all []int) bool {
	clear(b)
	if v>>viewBits == 1 {
		for _, rank := range all {
			b.add(rank)
		}
		return true
	}
	rank, which := int(v>>1&(1<<(viewBits-1)-1)), int(v&1)
	for i := range b {
		b[i] = p.set(rank, which, i).Load()
	}
	return p.view().Load() == v
}

// look copies the view.
func (p page) look(b bitmap, all []int) (v uint64) {
	for {
		if v = p.view().Load(); p.members(v, b, all) {
			return v
		}
	}
}

// propose makes the view one without the members that are dead, unless fewer than least
// would be left. Only one goroutine of a rank at a time.
func (p page) propose(rank int, all []int, least int) {
	b := newBitmap(all[len(all)-1] + 1)
	for {
		v := p.look(b, all)
		before := b.count()
		for _, r := range all {
			if p.state(r).Load() == dead {
				b.remove(r)
			}
		}
		if n := b.count(); n == before || n < least {
			return
		}
		which := 0
		if v&(1<<viewBits-1) == uint64(rank)<<1 {
			which = 1
		}
		for i, w := range b {
			p.set(rank, which, i).Store(w)
		}
		if p.view().CompareAndSwap(v, (v>>viewBits+1)<<viewBits|uint64(rank)<<1|uint64(which)) {
			return
		}
	}
}

// Survive has the job go on, from now on, when a rank dies, as long as so many are left.
// All ranks say the same.
func (h *Host) Survive(least int) { h.least.Store(int64(max(least, 1))) }

// View is who takes part. A rank that State says is dead is not among them, unless the
// job ends because of its death.
func (h *Host) View() rdma.View {
	if !h.guard.Enter() {
		return rdma.View{}
	}
	defer h.guard.Exit()
	known := h.known.Load()
	if known != nil && known.Generation == h.page.view().Load()>>viewBits {
		return *known
	}
	b := newBitmap(h.cfg.Size)
	seen := &rdma.View{Generation: h.page.look(b, h.members) >> viewBits}
	for rank := range h.cfg.Size {
		if b.has(rank) {
			seen.Ranks = append(seen.Ranks, rank)
		}
	}
	h.known.Store(seen)
	return *seen
}

// leaveOut has the view know that rank is dead. The caller has entered the guard.
func (h *Host) leaveOut(rank int) {
	least := int(h.least.Load())
	if least == 0 || !h.View().Has(rank) {
		return
	}
	h.proposing.Lock()
	defer h.proposing.Unlock()
	h.page.propose(h.cfg.Rank, h.members, least)
}

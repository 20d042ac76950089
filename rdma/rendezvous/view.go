package rendezvous

import (
	"slices"

	"malt/rdma"
	"malt/rdma/internal/mem"
	"malt/rdma/vote"
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
//
// On several hosts the hosts decide (ballots.go).

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

// electors is word i of the hosts of the view in one of a rank's sets, where there are
// several. Written with the set.
func (p page) electors(rank, which, i int) *mem.Word {
	return p.member(rank, offElectors+which*setBytes+8*i)
}

// members copies what v names into m; false where the view has changed. all are the ranks
// of the first.
func (p page) members(v uint64, m vote.Members, all []int) bool {
	clear(m.Ranks)
	if v>>viewBits == 1 {
		for _, rank := range all {
			m.Ranks.Add(rank)
		}
		return true
	}
	rank, which := int(v>>1&(1<<(viewBits-1)-1)), int(v&1)
	for i := range m.Ranks {
		m.Ranks[i] = p.set(rank, which, i).Load()
	}
	for i := range m.Hosts {
		m.Hosts[i] = p.electors(rank, which, i).Load()
	}
	return p.view().Load() == v
}

// look copies the view.
func (p page) look(m vote.Members, all []int) (v uint64) {
	for {
		if v = p.view().Load(); p.members(v, m, all) {
			return v
		}
	}
}

// install makes m the view of that generation, from a set of rank that v does not name;
// false where the view is not v any more. Only one goroutine of a rank at a time.
func (p page) install(v uint64, rank int, generation uint64, m vote.Members) bool {
	which := 0
	if v&(1<<viewBits-1) == uint64(rank)<<1 {
		which = 1
	}
	for i, w := range m.Ranks {
		p.set(rank, which, i).Store(w)
	}
	for i, w := range m.Hosts {
		p.electors(rank, which, i).Store(w)
	}
	return p.view().CompareAndSwap(v, generation<<viewBits|uint64(rank)<<1|uint64(which))
}

// propose makes the view one without the members that are dead, unless fewer than least
// would be left. It is for jobs on one host, where nobody has to be asked.
func (p page) propose(rank int, all []int, least int) {
	m := vote.Members{Ranks: vote.NewSet(all[len(all)-1] + 1)}
	for {
		v := p.look(m, all)
		before := m.Ranks.Count()
		for _, r := range all {
			if p.state(r).Load() == dead {
				m.Ranks.Remove(r)
			}
		}
		if n := m.Ranks.Count(); n == before || n < least || p.install(v, rank, v>>viewBits+1, m) {
			return
		}
	}
}

// Survive has the job go on, from now on, when a rank dies, as long as so many are left.
// All ranks say the same.
func (h *Host) Survive(least int) { h.least.Store(int64(max(least, 1))) }

// View is who takes part. A rank that State says is dead is not among them, unless the
// job ends because of its death: of views with fewer ranks than Survive asks for, it is the
// one before.
func (h *Host) View() rdma.View {
	if !h.guard.Enter() {
		return rdma.View{}
	}
	defer h.guard.Exit()
	v := h.latest()
	if h.suffices(v) {
		return *v
	}
	if before := h.enough.Load(); before != nil {
		return *before
	}
	return rdma.Everyone(h.cfg.Size)
}

// latest is the view of the page. The caller has entered the guard.
func (h *Host) latest() *rdma.View {
	known := h.known.Load()
	if known != nil && known.Generation == h.page.view().Load()>>viewBits {
		return known
	}
	all := h.members
	if h.cfg.Hosts != nil {
		all = rdma.Everyone(h.cfg.Size).Ranks
	}
	m := vote.Members{Ranks: vote.NewSet(h.cfg.Size)}
	seen := &rdma.View{Generation: h.page.look(m, all) >> viewBits}
	seen.Ranks = slices.AppendSeq(seen.Ranks, m.Ranks.All())
	if i, _ := slices.BinarySearch(seen.Ranks, h.cfg.Size); i < len(seen.Ranks) {
		seen.Ranks = seen.Ranks[:i] // the rest are witnesses
	}
	h.known.Store(seen)
	if h.suffices(seen) {
		h.enough.Store(seen)
	}
	return seen
}

// suffices tells whether the job goes on with such a view. On one host no other one is
// made.
func (h *Host) suffices(v *rdma.View) bool {
	return h.cfg.Hosts == nil || len(v.Ranks) >= int(h.least.Load())
}

// leaveOut has the view know that rank is dead, where nobody else has to be asked. The caller
// has entered the guard.
func (h *Host) leaveOut(rank int) {
	least := int(h.least.Load())
	if least == 0 || h.cfg.Hosts != nil || !h.latest().Has(rank) {
		return
	}
	h.proposing.Lock()
	defer h.proposing.Unlock()
	h.page.propose(h.cfg.Rank, h.members, least)
}

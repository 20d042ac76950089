package membership

import (
	"sync/atomic"
	"time"

	"malt/rdma/vote"
)

// page is a host's store in memory.
type page struct {
	w        *world
	host     int
	view     vote.View
	acceptor vote.Acceptor
	swaps    uint64
	out      atomic.Bool
}

// home is the page as a rank has it.
type home struct {
	*page
	p *process
}

func (h home) Enter() bool { h.p.step(); return true }
func (h home) Exit()       {}

func (h home) LeaveOut() { h.out.Store(true) }
func (h home) Out() bool { return h.out.Load() }

func (h home) OnDeath(wake func()) { h.p.onDeath = wake }

func (h home) View() vote.View {
	h.p.step()
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	return h.page.view
}

func (h home) Look(generation uint64) (vote.Acceptor, uint64, bool) {
	h.p.step()
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if h.acceptor.Generation != generation {
		return vote.Acceptor{Generation: generation}, h.swaps, h.acceptor.Generation < generation
	}
	return h.acceptor, h.swaps, true
}

func (h home) Swap(at uint64, a vote.Acceptor) bool {
	h.p.step()
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if h.swaps != at {
		return false
	}
	h.swaps++
	h.acceptor = a
	return true
}

func (h home) Learn(v vote.View) {
	h.p.step()
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if first, known := h.w.decided[v.Generation]; !known {
		h.w.decided[v.Generation] = judged{v, time.Now()}
		if before, ok := h.w.decided[v.Generation-1]; !ok || !v.Hosts.Within(before.Hosts) || !v.Ranks.Within(before.Ranks) {
			h.w.fault("view %v after %v", v, before.View)
		}
	} else if !first.Members.Equals(v.Members) {
		h.w.fault("two views of generation %d: %b and %b", v.Generation, first.Members, v.Members)
	}
	if v.Generation > h.page.view.Generation {
		h.page.view = v
	}
}

func (h home) Living() vote.Set {
	h.p.step()
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	s := vote.NewSet(len(h.w.job.Of))
	for _, p := range h.w.ranks {
		if p.host == h.host && p.alive {
			s.Add(p.rank)
		}
	}
	return s
}

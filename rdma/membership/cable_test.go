package membership

import (
	"slices"
	"time"

	"malt/rdma/vote"
)

// cable is a rank's part of the network. It refuses those that are not in the view that the
// rank has reviewed.
type cable struct{ p *process }

func (n cable) Post(peer int, k vote.Kind, arg uint32, body []byte) {
	n.p.step()
	w := n.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	w.frames++
	to := w.ranks[peer]
	if n.p.closed[peer] || w.rand.Float64() < w.loss || w.drop != nil && w.drop(n.p, to, k) {
		return
	}
	body = slices.Clone(body)
	time.AfterFunc(time.Duration(w.rand.Int64N(int64(w.flight))), func() { to.land(n.p, k, arg, body) })
}

func (p *process) land(from *process, k vote.Kind, arg uint32, body []byte) {
	w := p.w
	w.mu.Lock()
	if _, cut := w.cuts[pair(p.host, from.host)]; cut || !p.alive {
		w.mu.Unlock()
		return
	}
	if p.cont != nil {
		if len(p.held) < 100 {
			p.held = append(p.held, func() { p.land(from, k, arg, body) })
		}
		w.mu.Unlock()
		return
	}
	refused := p.closed[from.rank]
	w.mu.Unlock()
	if refused {
		from.m.Expelled(p.rank)
	} else if err := p.m.Land(from.rank, k, arg, body); err != nil {
		w.mu.Lock()
		w.fault("rank %d to %d: %v", from.rank, p.rank, err)
		w.mu.Unlock()
	}
}

func (n cable) Doubted(peer int) bool {
	n.p.step()
	w := n.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	to := w.ranks[peer]
	if since, cut := w.cuts[pair(n.p.host, to.host)]; cut && time.Since(since) >= doubtAfter {
		return true
	}
	return to.off && time.Since(to.since) >= doubtAfter
}

func (n cable) Gone(peer int) bool {
	n.p.step()
	w := n.p.w
	w.mu.Lock()
	defer w.mu.Unlock()
	to := w.ranks[peer]
	_, cut := w.cuts[pair(n.p.host, to.host)]
	if !to.alive && !to.off && !cut && time.Since(to.since) >= refusal {
		n.p.gone[peer] = true
	}
	return n.p.gone[peer]
}

func (n cable) Left(peer int) (uint64, bool) {
	n.p.w.mu.Lock()
	defer n.p.w.mu.Unlock()
	to := n.p.w.ranks[peer]
	return to.m.Farewell(), to.left
}

func (n cable) Review() {
	n.p.step()
	for peer := range n.p.closed {
		n.p.w.mu.Lock()
		closed := !n.p.closed[peer] && !n.p.m.Has(peer)
		n.p.closed[peer] = n.p.closed[peer] || closed
		n.p.w.mu.Unlock()
		if closed {
			n.p.w.ranks[peer].dial(n.p)
		}
	}
}

// dial is what a rank does whose link with another one has ended: again and again, until it
// is refused.
func (p *process) dial(other *process) {
	w := p.w
	w.mu.Lock()
	_, cut := w.cuts[pair(p.host, other.host)]
	again, refused := p.alive && other.alive && !w.over, !cut && p.cont == nil
	w.mu.Unlock()
	switch {
	case again && refused:
		p.m.Expelled(other.rank)
	case again:
		time.AfterFunc(100*time.Millisecond, func() { p.dial(other) })
	}
}

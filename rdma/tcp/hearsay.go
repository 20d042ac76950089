package tcp

import (
	"errors"
	"fmt"
	"slices"

	"malt/rdma"
)

// A rank that finds another one dead tells all others, since they may reach it: where
// a network is cut between two ranks, the job must end on those too that see both.
// Who is told looks for itself. It believes what it hears of a rank that has fallen
// silent to it as well; where it reaches both, the two cannot reach each other, and
// the higher one counts as dead. So all who hear of a cut from both sides come to the
// same rank. It is told so (aborted), and its connection ends before it counts as
// dead, as after any death.
//
// Only what a rank has found out is told: that nobody listens any more, or that a host
// is silent. A rank that ends because of something tells all others itself.

// obituary is the news of a death that this rank has found out.
type obituary struct {
	rank int
	why  *rdma.PeerError
}

// spread has the death told to all who are connected, once over each connection.
func (r *rank) spread(rank int, end error) {
	var dead *rdma.PeerError
	if !errors.As(end, &dead) || dead.Rank != rank || dead.Kind != rdma.Unreachable && !gone(end) {
		return
	}
	r.mu.Lock()
	news := append(slices.Clone(r.known()), obituary{rank, dead})
	r.found.Store(&news)
	r.mu.Unlock()
	for _, l := range r.links {
		if l != nil {
			l.kick()
		}
	}
}

// known is what has been found out up to now.
func (r *rank) known() []obituary {
	if found := r.found.Load(); found != nil {
		return *found
	}
	return nil
}

// obituaries sends what has not been told over this connection.
func (s *sender) obituaries() {
	known := s.link.rank.known()
	for ; s.buried < len(known); s.buried++ {
		o := known[s.buried]
		text := o.why.Err.Error()
		text = text[:min(len(text), maxName)]
		h := header{kind: dead, length: uint32(len(text)), id: uint32(o.rank), arg: uint32(o.why.Kind)}
		s.out = append(h.append(s.out), text...)
		s.link.posted.Add(1)
	}
}

// landDead takes in that the peer has found a rank dead.
func (l *link) landDead(h header, b []byte) error {
	r := l.rank
	if h.id >= uint32(r.cfg.Size) || h.arg < uint32(rdma.Ended) || h.arg >= uint32(rdma.Deaths) {
		return malformed("the death of rank %d of %d, of kind %d", h.id, r.cfg.Size, h.arg)
	}
	rank, why := int(h.id), string(b)
	if rank == r.cfg.Rank || rank == l.peer {
		return nil // the peer will say so in a last word
	}
	r.watching.Go(func() {
		// What the rank has sent counts, and if it ends by itself that says more.
		if l.sleep(grace); l.ctx.Err() != nil {
			return
		}
		switch of := r.links[rank]; {
		case r.state(rank) != nil || l.condemned.Load() != nil:
		case of != nil && !of.healthy():
			of.condemn(&rdma.PeerError{Rank: rank, Kind: rdma.Death(h.arg), Err: fmt.Errorf("rank %d says: %s", l.peer, why)})
		case of != nil && rank > l.peer:
			of.condemn(apart(rank, l.peer, why))
		default: // a rank of this host, which is there, or the lower one
			l.condemn(apart(l.peer, rank, why))
		}
	})
	return nil
}

// apart is the death of a rank that cannot reach another one, where this rank reaches
// both.
func apart(rank, other int, why string) *rdma.PeerError {
	return &rdma.PeerError{Rank: rank, Kind: rdma.Unreachable, Err: fmt.Errorf("ranks %d and %d do not reach each other: %s", min(rank, other), max(rank, other), why)}
}

// healthy tells whether the peer's kernel answers over the connection.
func (l *link) healthy() bool {
	c := l.current()
	return c != nil && !c.silentFor(l.suspicious())
}

// condemn ends the link with a peer that counts as dead from now on, after a last word
// for which it has a moment.
func (l *link) condemn(why *rdma.PeerError) {
	if !l.condemned.CompareAndSwap(nil, why) {
		return
	}
	l.abort(why)
	if l.current() != nil {
		l.sleep(abortPatience)
	}
	l.stop()
}

package remote

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

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
//
// None of this holds from Survive on: there the hosts vote.

// obituary is the news of a death that this rank has found out.
type obituary struct {
	rank int
	why  *rdma.PeerError
}

// spread has the death told to all who are connected, once over each connection.
func (r *rank) spread(rank int, end error) {
	var dead *rdma.PeerError
	if r.survivors() != nil || !errors.As(end, &dead) || dead.Rank != rank || dead.Kind != rdma.Unreachable && !gone(end) || errors.As(end, new(*rdma.ApartError)) {
		return
	}
	r.mu.Lock()
	news := append(slices.Clone(r.known()), obituary{rank, dead})
	r.found.Store(&news)
	r.mu.Unlock()
	for _, l := range r.peers {
		l.kick()
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
func (s *session) obituaries() {
	if s.link.rank.survivors() != nil {
		return
	}
	known := s.link.rank.known()
	for ; s.buried < len(known); s.buried++ {
		o := known[s.buried]
		text := o.why.Err.Error()
		text = text[:min(len(text), maxName)]
		h := header{kind: dead, length: uint32(len(text)), id: uint32(o.rank), arg: uint32(o.why.Kind)}
		s.out = append(h.append(s.out), text...)
		s.posted.Add(1)
	}
}

// landDead takes in that the peer has found a rank dead.
func (l *link) landDead(h header, b []byte) error {
	r := l.rank
	if h.id >= uint32(r.cfg.peers()) || h.arg < uint32(rdma.Ended) || h.arg >= uint32(rdma.Deaths) {
		return malformed("the death of rank %d of %d, of kind %d", h.id, r.cfg.peers(), h.arg)
	}
	rank := int(h.id)
	if rank == r.cfg.Rank || rank == l.peer {
		return nil // the peer will say so in a last word
	}
	if l.mourned == nil {
		l.mourned = make([]bool, r.cfg.peers())
	}
	if l.mourned[rank] {
		return nil // one word of each is looked into
	}
	l.mourned[rank] = true
	why := errors.New(string(b))
	r.watching.Go(func() {
		// What the rank has sent counts, and if it ends by itself that says more.
		if l.sleep(grace); l.ctx.Err() != nil || r.survivors() != nil {
			return
		}
		switch of := r.links[rank]; {
		case r.state(rank) != nil || l.condemned.Load() != nil:
		case of != nil && !of.healthy():
			of.condemn(&rdma.PeerError{Rank: rank, Kind: rdma.Death(h.arg), Err: fmt.Errorf("rank %d says: %w", l.peer, why)}, abortPatience)
		case of != nil && rank > l.peer:
			of.condemn(rdma.Apart(rank, l.peer, why), abortPatience)
		default: // a rank of this host, which is there, or the lower one
			l.condemn(rdma.Apart(l.peer, rank, why), abortPatience)
		}
	})
	return nil
}

// healthy tells whether the peer's kernel answers over the connection.
func (l *link) healthy() bool {
	c := l.current()
	return c != nil && !c.silentFor(l.suspicious())
}

// condemn ends the link with a peer that counts as dead from now on, after a last word
// for which it has a moment. That names the two that do not reach each other.
func (l *link) condemn(why *rdma.PeerError, moment time.Duration) {
	if !l.condemned.CompareAndSwap(nil, why) {
		return
	}
	word := why
	if !errors.As(why, new(*rdma.ApartError)) {
		word = rdma.Apart(l.peer, l.rank.cfg.Rank, why.Err)
	}
	l.abort(word)
	if l.current() != nil {
		timer := time.NewTimer(abortPatience)
		defer timer.Stop()
		select {
		case <-l.spoken:
			l.sleep(moment)
		case <-timer.C:
		case <-l.ctx.Done():
		}
	}
	l.stop()
}

// appendAborted is a rank's last word.
func appendAborted(b []byte, why *rdma.PeerError) []byte {
	err, arg := why.Err, uint32(why.Kind)
	var apart *rdma.ApartError
	if errors.As(err, &apart) {
		err, arg = apart.Why, arg|uint32(1+apart.Ranks[0]+apart.Ranks[1]-why.Rank)<<apartShift
	}
	text := err.Error()
	text = text[:min(len(text), maxName)]
	h := header{kind: aborted, length: uint32(len(text)), id: uint32(why.Rank), arg: arg}
	return append(h.append(b), text...)
}

// landAborted is the death that the peer's last word is about.
func (l *link) landAborted(h header, b []byte) error {
	c, text := &l.rank.cfg, errors.New(string(b))
	why := &rdma.PeerError{Rank: int(h.id & math.MaxInt32), Kind: rdma.Death(h.arg), Err: text}
	if other := int(h.arg >> apartShift); other > 0 && other <= c.peers() && other-1 != why.Rank && why.Kind == rdma.Unreachable {
		why = rdma.Apart(why.Rank, other-1, fmt.Errorf("rank %d, at %s, says: %w", l.peer, strings.Join(l.addresses(), ", "), text))
	}
	return why.Heard(l.peer, c.Rank, c.peers())
}

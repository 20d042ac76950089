package remote

import (
	"errors"
	"time"

	"malt/rdma"
	"malt/rdma/vote"
)

// A job may go on when a rank dies. From Survive on a rank does not decide by itself that
// another one is dead: the hosts vote. A refusal still ends a link, and what a peer says
// itself does. Silence only makes a doubt: the link dials until the peer is heard, refuses,
// or is left out of the view.
//
// A doubt must come soon, so something is under way over every connection at all times: an
// empty frame (beat) when nothing else was sent for beatEvery. If the peer's kernel does
// not acknowledge what is under way, this rank dials (reach.go). When something has last
// arrived does not tell: with one direction cut, what the other end sends again and again
// arrives.

// Members decides who takes part, in a job that goes on when ranks die.
type Members = interface {
	// Land takes in a frame of package vote from peer, in the order in which peer has
	// posted them. body is valid during the call. The goroutine that calls it may be any
	// that looks for an update: it must not wait for anything, but can Post. An error is
	// that of a malformed frame (rdma.ErrCorrupt), and ends the connection.
	Land(peer int, k vote.Kind, arg uint32, body []byte) error
	// Has tells whether rank takes part in the newest view that this host knows. A rank
	// that does not never does again.
	Has(rank int) bool
	// Expelled says that peer has refused this rank, since it is not in the view that peer
	// knows.
	Expelled(peer int)
	// Farewell is what this rank tells with its end, when it leaves: below 1<<32.
	Farewell() uint64
}

// beatEvery is how long a connection may carry nothing.
const beatEvery = 50 * time.Millisecond

var (
	errLeftOut = errors.New("the hosts have voted to go on without it")
	errGoneOn  = errors.New("it has gone on without this rank")
)

// Survive has the job go on, from now on, when a rank dies. Before, a death ends it: a peer
// that has yet to call Survive takes in what members post, and drops it. Config.Survives
// has announced the call.
func (t *Transport) Survive(members Members) { t.members.Store(&members) }

// survivors is what Survive was given; nil before.
func (r *rank) survivors() Members {
	if m := r.members.Load(); m != nil {
		return *m
	}
	return nil
}

// beginDoubting makes the change for watch. Up to here an idle connection was asked once a
// second: how long it has been silent tells nothing.
func (r *rank) beginDoubting() {
	for _, l := range r.peers {
		l.mu.Lock()
		l.silence, l.counted = 0, time.Now()
		l.mu.Unlock()
	}
	r.doubting.Store(true)
	r.beat()
	r.watching.Go(r.goOnBeating)
}

// count adds what has passed between two looks in which nothing was heard of the peer, over
// its connection. Of a longer time this process may have been stopped: then it tells
// nothing.
func (l *link) count(over *conn, passed time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.current() == over {
		l.add(min(passed, l.rank.cfg.doubt/4), passed)
	}
}

// beat has one sent over each connection over which nothing else was.
func (r *rank) beat() {
	for _, l := range r.peers {
		if s := l.session.Load(); s != nil && s.pulse.quiet(s.posted.Load()) {
			s.votes.due.Store(true)
			l.kick()
		}
	}
}

func (r *rank) goOnBeating() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		select {
		case <-r.unwatch:
			return
		case <-tick.C:
			r.beat()
		}
	}
}

// pulse is what a connection had carried at the last look.
type pulse struct {
	posted uint64 // frames
	beat   uint64 // 1: one more was asked for
}

// quiet tells whether no other frame was sent since, and counts on a beat then.
func (p *pulse) quiet(posted uint64) bool {
	quiet := posted-p.posted <= p.beat
	p.posted, p.beat = posted, 0
	if quiet {
		p.beat = 1
	}
	return quiet
}

// Doubted tells whether peer has acknowledged nothing for some time, though it was asked:
// 4/5 of Config.Unreachable. Its host may be away, or hear
// nothing, or not be heard; or the link with it has ended. A process that is stopped is not
// doubted: its kernel answers.
func (t *Transport) Doubted(peer int) bool {
	l := t.links[peer]
	if l == nil || !t.doubting.Load() {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.doubted() || t.state(peer) != nil
}

// doubted: mu is held.
func (l *link) doubted() bool { return l.silence >= l.rank.cfg.doubt }

// Gone tells whether the process of peer has ended for certain, or peer has left.
func (t *Transport) Gone(peer int) bool {
	end := t.state(peer)
	return errors.Is(end, rdma.ErrLeft) || gone(end)
}

// Left tells whether peer has left in good order, and its Farewell; 0 before Survive.
func (t *Transport) Left(peer int) (farewell uint64, left bool) {
	if !errors.Is(t.state(peer), rdma.ErrLeft) {
		return 0, false
	}
	return uint64(t.links[peer].farewell.Load()), true
}

// Said tells whether the end of peer, as State has it, is its own last word.
func (t *Transport) Said(peer int) bool {
	l := t.links[peer]
	return l != nil && t.state(peer) != nil && l.lastWord.Load()
}

// Review ends the links with those peers that are not in the view any more. Votes posted
// to them still go out if they take them. State tells their end once the link has ended. A
// rank that dials later is refused, and told why.
func (t *Transport) Review() {
	members := t.survivors()
	for _, l := range t.peers {
		if !members.Has(l.peer) {
			l.part()
		}
	}
}

// part ends the link with a peer that is left out.
func (l *link) part() {
	if !l.condemned.CompareAndSwap(nil, l.dead(rdma.Unreachable, errLeftOut)) {
		return
	}
	l.parting.Store(true)
	l.mu.Lock()
	l.become(stopping)
	c, doubted := l.current(), l.doubted()
	l.mu.Unlock()
	switch { // with mu free, as in stop
	case c == nil:
	case doubted:
		c.Reset()
	default:
		over := time.Now().Add(abortPatience)
		_ = c.SetReadDeadline(over)
		_ = c.SetWriteDeadline(over)
	}
	l.kick()
}

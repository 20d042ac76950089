package remote

import (
	"time"

	"malt/rdma"
)

// leave says that nothing more comes, and waits until the peer has taken
// everything, or has taken nothing for as long as a host may be silent.
func (l *link) leave() {
	l.leaving.Store(true)
	l.kick()
	limit := l.rank.cfg.Unreachable
	tick := time.NewTicker(limit / 50)
	defer tick.Stop()
	silence, taken := time.Duration(0), uint64(0)
	for at := time.Now(); silence < limit; {
		select {
		case <-l.ended:
			return
		case <-tick.C:
		}
		passed := time.Since(at)
		at = at.Add(passed)
		silence += min(passed, limit/10)                        // of a longer time this process may have been stopped
		if s := l.session.Load(); s != nil && !s.asked.Load() { // else it may be stopped, and acknowledges beats
			if k, ok := s.conn.state(); ok && k.Acked != taken {
				silence, taken = 0, k.Acked
			}
		}
	}
	l.stop()
}

// abort has the reason sent behind what is published.
func (l *link) abort(why *rdma.PeerError) {
	l.aborting.CompareAndSwap(nil, why)
	l.kick()
}

const abortPatience = 500 * time.Millisecond

// join waits until all links have ended.
func (r *rank) join() {
	for _, l := range r.peers {
		<-l.ended
	}
}

// joinWithin waits for those that have a connection.
func (r *rank) joinWithin(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	for _, l := range r.peers {
		if l.current() != nil {
			select {
			case <-l.ended:
			case <-t.C:
				return
			}
		}
	}
}

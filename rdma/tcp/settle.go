package tcp

import (
	"fmt"
	"runtime"
	"time"
)

// Settle returns when no rank has anything to send to another, and everything
// that was sent has landed. It is for tests, of ranks that are all in this
// process; the error, after a while, says what it has waited for.
func Settle(all []*Transport, patience time.Duration) error {
	pairs := func(do func(l, other *link)) {
		for _, t := range all {
			for peer, l := range t.links {
				if l != nil {
					do(l, all[peer].links[t.Rank()])
				}
			}
		}
	}
	pairs(func(l, _ *link) { l.kick() }) // for what may wait a moment
	// Twice: what landed during the first look may have given somebody something
	// to send.
	for calm, end := 0, time.Now().Add(patience); calm < 2; calm++ {
		var busy string
		pairs(func(l, other *link) {
			select {
			case <-l.ended:
				return
			default:
			}
			if l.dirty.Load() || !l.idle.Load() || l.posted.Load() != other.landed.Load() {
				busy += fmt.Sprintf("\n%d to %d: dirty %v, idle %v, %d sent, %d landed; last failure: %v; %d malformed",
					l.rank.cfg.Rank, l.peer, l.dirty.Load(), l.idle.Load(), l.posted.Load(), other.landed.Load(), l.lastWhy(), l.malformed)
			}
		})
		if busy != "" {
			calm = -1
			runtime.Gosched()
			if time.Now().After(end) {
				return fmt.Errorf("tcp: not settled:%s", busy)
			}
		}
	}
	return nil
}

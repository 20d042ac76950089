package remote

import (
	"sync"
	"time"
)

// moment is how long news may wait that nobody waits for: quiet words, and
// releases in newest mode. Then they travel together, or with what comes before.
// A write that a card could not begin is tried again then.
const moment = 2 * time.Millisecond

// later looks at the links of a rank a moment after it was asked to.
type later struct {
	rank  *rank
	mu    sync.Mutex
	timer *time.Timer
	armed bool
}

func (w *later) ask() {
	if len(w.rank.peers) == 0 {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.armed:
	case w.timer == nil:
		w.timer = time.AfterFunc(moment, w.fire)
	default:
		w.timer.Reset(moment)
	}
	w.armed = true
}

func (w *later) fire() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.armed = false
	for _, l := range w.rank.peers {
		l.kick()
	}
}

// pending tells whether it will.
func (w *later) pending() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.armed
}

// stop has it asked in vain.
func (w *later) stop() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.armed = true; w.timer != nil {
		w.timer.Stop()
	}
}

package mem

import (
	"sync"
	"sync/atomic"
)

// Guard keeps a mapping from being unmapped under those who use it. Everybody
// else enters, uses it, and exits, nested as they like; who unmaps closes first.
// The zero value is open.
type Guard struct {
	inside  atomic.Int64 // those inside; less closing once closed
	once    sync.Once
	closed  atomic.Bool
	drained chan struct{}
	mu      sync.Mutex // makes drained
}

const closing = 1 << 62

// Enter tells whether the mapping may be used until Exit; false once closed, and
// then there is no Exit to call.
func (g *Guard) Enter() bool {
	if g.inside.Add(1) > 0 {
		return true
	}
	g.Exit()
	return false
}

// Exit ends what Enter began.
func (g *Guard) Exit() {
	if g.inside.Add(-1) == -closing {
		g.once.Do(func() { close(g.channel()) })
	}
}

// Closed tells whether Close has been called: who is inside for long looks at it
// from time to time and leaves.
func (g *Guard) Closed() bool { return g.closed.Load() }

// Close lets nobody in any more, calls hurry, which should make those inside
// leave, and waits until they have. It tells whether this call was the first;
// only the first may unmap, and the others do not wait.
func (g *Guard) Close(hurry func()) (first bool) {
	if !g.closed.CompareAndSwap(false, true) {
		return false
	}
	drained := g.channel()
	if g.inside.Add(-closing) == -closing {
		return true
	}
	if hurry != nil {
		hurry()
	}
	<-drained
	return true
}

// channel is closed when the last has left.
func (g *Guard) channel() chan struct{} {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.drained == nil {
		g.drained = make(chan struct{})
	}
	return g.drained
}

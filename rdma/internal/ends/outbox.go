package ends

import (
	"sync"

	"malt/rdma"
	"malt/rdma/box"
)

// Outbox is a box.Outbox whose memory a Close of the transport, by another
// goroutine, may give back: the lock keeps the two apart. After Close the box
// itself no longer looks at its memory.
type Outbox struct {
	mu  sync.Mutex
	Box *box.Outbox
}

var _ rdma.ViewedOutbox = (*Outbox)(nil)

// Begin implements rdma.Outbox.
func (o *Outbox) Begin() ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Box.Begin()
}

// Reserve implements rdma.Outbox.
func (o *Outbox) Reserve(n int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Box.Reserve(n)
}

// Commit implements rdma.Outbox.
func (o *Outbox) Commit(n int, s rdma.Stamp, to []int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Box.Commit(n, s, to)
}

// Advance implements rdma.Outbox.
func (o *Outbox) Advance(clock uint64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Box.Advance(clock)
}

// Acked implements rdma.Outbox.
func (o *Outbox) Acked(reader int) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Box.Acked(reader)
}

// Excuse implements rdma.Outbox.
func (o *Outbox) Excuse(reader int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Box.Excuse(reader)
}

// Serve implements rdma.ViewedOutbox.
func (o *Outbox) Serve(generation uint64, to []int) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Box.Serve(generation, to)
}

// Served implements rdma.ViewedOutbox.
func (o *Outbox) Served(reader int) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Box.Served(reader)
}

// Forget implements rdma.ViewedOutbox.
func (o *Outbox) Forget(reader int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.Box.Forget(reader)
}

// Close implements rdma.Outbox.
func (o *Outbox) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.Box.Close()
}

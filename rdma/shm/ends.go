package shm

import (
	"errors"
	"sync"

	"malt/rdma"
	"malt/rdma/box"
)

// outbox is a box.Outbox whose memory a Close of the transport, by another
// goroutine, may unmap: the lock keeps the two apart. After Close the box itself
// no longer looks at its memory.
type outbox struct {
	mu  sync.Mutex
	box *box.Outbox
}

var _ rdma.Outbox = (*outbox)(nil)

func (o *outbox) Begin() ([]byte, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Begin()
}

func (o *outbox) Commit(n int, s rdma.Stamp, to []int) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Commit(n, s, to)
}

func (o *outbox) Advance(clock uint64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Advance(clock)
}

func (o *outbox) Acked(reader int) uint64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Acked(reader)
}

func (o *outbox) Excuse(reader int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.box.Excuse(reader)
}

func (o *outbox) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.box.Close()
}

// inbox is the same for a box.Inbox.
type inbox struct {
	mu        sync.Mutex
	box       *box.Inbox
	pair      pair
	closed    bool
	published uint64 // when it was closed
}

var _ rdma.Inbox = (*inbox)(nil)

func (i *inbox) From() int { return i.box.From() }

func (i *inbox) Next() (rdma.Update, bool, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.box.Next()
}

func (i *inbox) At(clock uint64) (rdma.Update, bool, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.box.At(clock)
}

func (i *inbox) Release(seq uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.closed {
		i.box.Release(seq)
	}
}

func (i *inbox) Clock() (uint64, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.box.Clock()
}

func (i *inbox) Published() uint64 {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return i.published
	}
	return i.box.Published()
}

func (i *inbox) Close() error {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.closed {
		return nil
	}
	i.published = i.box.Published()
	i.closed = true
	return errors.Join(i.box.Close(), i.pair.unmap())
}

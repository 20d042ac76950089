package ends

import (
	"sync"

	"malt/rdma"
	"malt/rdma/box"
)

// Inbox is the same for a box.Inbox. A transport that has more to do in a method
// does it under Mu.
type Inbox struct {
	Mu     sync.Mutex
	Box    *box.Inbox
	Closed bool // guarded by Mu

	published uint64 // when it was closed
}

var _ rdma.ViewedInbox = (*Inbox)(nil)

// From implements rdma.Inbox.
func (i *Inbox) From() int { return i.Box.From() }

// Next implements rdma.Inbox.
func (i *Inbox) Next() (rdma.Update, bool, error) {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	return i.Box.Next()
}

// At implements rdma.Inbox.
func (i *Inbox) At(clock uint64) (rdma.Update, bool, error) {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	return i.Box.At(clock)
}

// Release implements rdma.Inbox.
func (i *Inbox) Release(seq uint64) {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	if !i.Closed {
		i.Box.Release(seq)
	}
}

// Return implements rdma.Inbox.
func (i *Inbox) Return() {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	if !i.Closed {
		i.Box.Return()
	}
}

// Returned implements rdma.Inbox.
func (i *Inbox) Returned() bool { return i.Box.Returned() }

// Begin implements rdma.ViewedInbox.
func (i *Inbox) Begin(generation uint64) {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	if !i.Closed {
		i.Box.Begin(generation)
	}
}

// Over implements rdma.ViewedInbox.
func (i *Inbox) Over(generation uint64) bool {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	return i.Closed || i.Box.Over(generation)
}

// Pass implements rdma.ViewedInbox.
func (i *Inbox) Pass(there bool) {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	if !i.Closed {
		i.Box.Pass(there)
	}
}

// Level implements rdma.ViewedInbox.
func (i *Inbox) Level(seq uint64) {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	if !i.Closed {
		i.Box.Level(seq)
	}
}

// Clock implements rdma.Inbox.
func (i *Inbox) Clock() (uint64, error) {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	return i.Box.Clock()
}

// Published implements rdma.Inbox.
func (i *Inbox) Published() uint64 {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	if i.Closed {
		return i.published
	}
	return i.Box.Published()
}

// Close implements rdma.Inbox.
func (i *Inbox) Close() error {
	i.Mu.Lock()
	defer i.Mu.Unlock()
	if i.Closed {
		return nil
	}
	i.published, i.Closed = i.Box.Published(), true
	return i.Box.Close()
}

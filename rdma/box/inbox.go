package box

import (
	"fmt"

	"malt/rdma"
)

// Inbox is rdma.Inbox over a Reader.
type Inbox struct {
	end End
	r   *Reader
}

var _ rdma.ViewedInbox = (*Inbox)(nil)

// NewInbox attaches to a box that its sender has announced: e.Layout is computed
// from this rank's own Spec, which must have been compared with the sender's,
// and index is this rank's place among the readers of the announcement. A
// control block that is not the announced one is ErrCorrupt.
func NewInbox(e End, index int) (*Inbox, error) {
	if err := e.attach(); err != nil {
		return nil, err
	}
	if index < 0 || index >= e.Layout.Readers {
		return nil, fmt.Errorf("%s: reader %d of %d", e.Name, index, e.Layout.Readers)
	}
	if err := e.compare(); err != nil {
		return nil, err
	}
	h := e.Header()
	r := NewReader(e.Control, e.Layout, index, h, e.Bell, ReaderEnv{
		Slot: e.Slot, Find: e.Find, Ring: e.Ring,
		State: func() error { return e.State(e.Sender) },
	})
	r.ahead = e.Replica
	return &Inbox{e, r}, nil
}

// From implements rdma.Inbox.
func (i *Inbox) From() int { return i.end.Sender }

// Next implements rdma.Inbox.
func (i *Inbox) Next() (rdma.Update, bool, error) {
	h, payload, ok, err := i.r.Next()
	if err != nil {
		return rdma.Update{}, false, i.wrap(err)
	}
	if !ok {
		return rdma.Update{}, false, nil
	}
	if payload != nil {
		i.end.Meter.received(i.end.Sender, len(payload))
	}
	return rdma.Update{Stamp: h.Stamp, Seq: h.Seq, Data: payload}, true, nil
}

// At implements rdma.Inbox.
func (i *Inbox) At(clock uint64) (rdma.Update, bool, error) {
	if i.end.Layout.Spec.Mode != rdma.ByClock {
		return rdma.Update{}, false, fmt.Errorf("%s: At needs a box in lock-step; this one is %s", i.end.Name, Describe(i.end.Layout.Spec))
	}
	h, payload, ok, fresh, err := i.r.At(clock)
	if err != nil {
		return rdma.Update{}, false, i.wrap(err)
	}
	if !ok {
		return rdma.Update{}, false, nil
	}
	if fresh {
		i.end.Meter.received(i.end.Sender, len(payload))
	}
	return rdma.Update{Stamp: h.Stamp, Seq: h.Seq, Data: payload}, true, nil
}

// Release implements rdma.Inbox. Updates up to seq that Next has not returned
// are skipped; ^uint64(0) stands for all that have been published.
func (i *Inbox) Release(seq uint64) { i.r.Release(seq) }

// Return implements rdma.Inbox. The sender may be using any slot up to the head,
// which was published last.
func (i *Inbox) Return() { i.r.Release(released) }

// Returned implements rdma.Inbox.
func (i *Inbox) Returned() bool { return true }

// Clock implements rdma.Inbox. A caller that waits for an update asks Clock
// first and Next then: when Clock gave an error and Next has nothing, nothing
// will come.
func (i *Inbox) Clock() (uint64, error) { return i.r.Clock() }

// Published implements rdma.Inbox.
func (i *Inbox) Published() uint64 { return i.r.Published() }

// Begin implements rdma.ViewedInbox.
func (i *Inbox) Begin(generation uint64) { i.r.Begin(generation) }

// Over implements rdma.ViewedInbox.
func (i *Inbox) Over(generation uint64) bool { return i.r.Over(generation) }

// Pass implements rdma.ViewedInbox.
func (i *Inbox) Pass(there bool) { i.r.Pass(there) }

// Level implements rdma.ViewedInbox.
func (i *Inbox) Level(seq uint64) { i.r.Level(seq) }

// Close implements rdma.Inbox. Closing twice does no harm.
func (i *Inbox) Close() error {
	if i.r.closed {
		return nil
	}
	i.r.Close()
	return i.end.done()
}

func (i *Inbox) wrap(err error) error {
	return fmt.Errorf("%s from rank %d: %w", i.end.Name, i.end.Sender, err)
}

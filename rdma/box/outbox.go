package box

import (
	"fmt"

	"malt/rdma"
)

// Outbox is rdma.Outbox over a Writer: it knows ranks, checks arguments and
// counts.
type Outbox struct {
	end     End
	w       *Writer
	readers []int       // rank of each reader
	number  map[int]int // and back
	to      []int       // numbers of the readers of a commit; room for all
	marked  []uint64    // marked[r] == commits: r is in to already
	commits uint64
}

var _ rdma.ViewedOutbox = (*Outbox)(nil)

// NewOutbox makes the sending end of a box in fresh memory. readers are ranks,
// without repeats; the place of a rank in it is that reader's index at NewInbox.
// reserve is called before the first use of bytes from … to of a slot, from 0 on;
// nil where there is nothing to do.
func NewOutbox(e End, readers []int, reserve func(slot, from, to int) error) (*Outbox, error) {
	if err := e.attach(); err != nil {
		return nil, err
	}
	if len(readers) != e.Layout.Readers {
		return nil, fmt.Errorf("%s: %d readers in a layout for %d", e.Name, len(readers), e.Layout.Readers)
	}
	o := &Outbox{
		end: e, readers: append([]int(nil), readers...), number: make(map[int]int, len(readers)),
		to: make([]int, 0, len(readers)), marked: make([]uint64, len(readers)),
	}
	for i, rank := range readers {
		if _, twice := o.number[rank]; twice || rank < 0 {
			return nil, fmt.Errorf("%s: readers %v: each must be a rank, and named once", e.Name, readers)
		}
		o.number[rank] = i
	}
	h := e.Header()
	o.w = NewWriter(e.Control, e.Layout, h, e.Bell, WriterEnv{
		Slot: e.Slot, Reserve: reserve, Ring: e.Ring,
		Gone: func(r int) bool { return e.State(o.readers[r]) != nil }, Lock: e.Lock,
	})
	e.format()
	return o, nil
}

// Begin implements rdma.Outbox.
func (o *Outbox) Begin() ([]byte, error) {
	b, err := o.w.Begin()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.end.Name, err)
	}
	return b, nil
}

// Reserve implements rdma.Outbox.
func (o *Outbox) Reserve(n int) error {
	switch {
	case o.w.closed:
		return fmt.Errorf("%s: %w", o.end.Name, rdma.ErrClosed)
	case o.w.slot < 0:
		return fmt.Errorf("%s: Reserve without Begin; it works on the slot that Begin returned", o.end.Name)
	case n < 0 || n > o.end.Layout.Spec.Bytes:
		return fmt.Errorf("%s: Reserve of %d bytes in a slot of %d", o.end.Name, n, o.end.Layout.Spec.Bytes)
	}
	if err := o.w.Reserve(n); err != nil {
		return fmt.Errorf("%s: %w", o.end.Name, err)
	}
	return nil
}

// Commit implements rdma.Outbox.
func (o *Outbox) Commit(n int, s rdma.Stamp, to []int) error {
	switch {
	case o.w.closed:
		return fmt.Errorf("%s: %w", o.end.Name, rdma.ErrClosed)
	case o.w.slot < 0:
		return fmt.Errorf("%s: Commit without Begin; each Commit publishes a slot that Begin returned", o.end.Name)
	case n < 0 || n > o.end.Layout.Spec.Bytes:
		return fmt.Errorf("%s: Commit of %d bytes into a slot of %d", o.end.Name, n, o.end.Layout.Spec.Bytes)
	}
	if to == nil {
		o.w.Commit(n, s, nil, true)
		for _, rank := range o.readers {
			o.end.Meter.sent(rank, n)
		}
		return nil
	}
	o.commits++
	o.to = o.to[:0]
	for _, rank := range to {
		r, ok := o.number[rank]
		if !ok {
			return fmt.Errorf("%s: rank %d is not among the readers %v", o.end.Name, rank, o.readers)
		}
		if o.marked[r] != o.commits {
			o.marked[r] = o.commits
			o.to = append(o.to, r)
		}
	}
	o.w.Commit(n, s, o.to, false)
	for _, r := range o.to {
		o.end.Meter.sent(o.readers[r], n)
	}
	return nil
}

// Advance implements rdma.Outbox.
func (o *Outbox) Advance(clock uint64) error {
	if o.w.closed {
		return fmt.Errorf("%s: %w", o.end.Name, rdma.ErrClosed)
	}
	o.w.Advance(clock)
	return nil
}

// Acked implements rdma.Outbox; 0 for a rank that is not a reader.
func (o *Outbox) Acked(reader int) uint64 {
	r, ok := o.number[reader]
	if !ok || o.w.closed {
		return 0
	}
	return o.w.Acked(r)
}

// Excuse implements rdma.Outbox; nothing happens for a rank that is not a
// reader.
func (o *Outbox) Excuse(reader int) {
	if r, ok := o.number[reader]; ok {
		o.w.Excuse(r)
	}
}

// Serve implements rdma.ViewedOutbox.
func (o *Outbox) Serve(generation uint64, to []int) int {
	if o.w.closed {
		return 0
	}
	o.to = o.to[:0]
	for _, rank := range to {
		if r, ok := o.number[rank]; ok {
			o.to = append(o.to, r)
		}
	}
	return o.w.Serve(generation, o.to)
}

// Served implements rdma.ViewedOutbox.
func (o *Outbox) Served(reader int) bool {
	r, ok := o.number[reader]
	return ok && !o.w.closed && o.w.Served(r)
}

// Forget implements rdma.ViewedOutbox.
func (o *Outbox) Forget(reader int) {
	if r, ok := o.number[reader]; ok {
		o.w.Forget(r)
	}
}

// Close implements rdma.Outbox. Closing twice does no harm.
func (o *Outbox) Close() error {
	if o.w.closed {
		return nil
	}
	o.w.Close()
	return o.end.done()
}

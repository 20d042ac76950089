package fabric

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"malt/rdma/internal/mem"
)

// Probe has a Carrier without peers write to itself, and closes it when that has arrived, or has not.
func Probe(ctx context.Context, c Carrier) (err error) {
	const n, number = 64, 1
	m, err := mem.NewPinned(2 * n)
	if err != nil {
		return errors.Join(err, c.Close())
	}
	defer func() { err = errors.Join(err, c.Close(), m.Unmap()) }()
	from, to := m.Bytes()[:n], m.Bytes()[n:]
	for i := range from {
		from[i] = byte(i + 1)
	}
	source, err := c.Register(m, Source)
	if err != nil {
		return err
	}
	target, err := c.Register(m, Target)
	if err != nil {
		return err
	}
	if err := c.Connect(0, c.Address()); err != nil {
		return err
	}
	address, key := target.Remote()
	op := &Op{From: source, Bytes: n, Address: address + uint64(n), Key: key, Number: number}
	var ev [4]Event
	posted, completed, arrived := false, false, false
	for !completed || !arrived {
		if !posted {
			err := c.Write(op)
			if err != nil && !errors.Is(err, ErrBusy) {
				return err
			}
			posted = err == nil
		}
		for _, e := range ev[:c.Poll(ev[:])] {
			if e.Err != nil {
				return e.Err
			}
			completed = completed || e.Op == op
			arrived = arrived || e.Number == number
		}
		if ctx.Err() != nil {
			return fmt.Errorf("a write to itself has not arrived in time (posted %t, completed %t, notified %t)", posted, completed, arrived)
		}
		c.Wait(time.Millisecond)
	}
	if !bytes.Equal(from, to) {
		return errors.New("a write to itself was notified, but its bytes are not there")
	}
	return nil
}

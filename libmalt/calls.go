package libmalt

import (
	"context"
	"fmt"

	"malt/internal/say"
	"malt/libmalt/reduce"
)

// Barrier waits until every rank is in its barrier.
func (w *World) Barrier(ctx context.Context) error {
	_, err := w.collect(ctx, opOf("malt.barrier", "", nil), nil)
	return err
}

// AllGather gives every rank every rank's bytes, which may differ in length.
func (w *World) AllGather(ctx context.Context, data []byte) ([][]byte, error) {
	return w.AllGatherFor(ctx, "malt.allgather", "", data)
}

// AllGatherFor is AllGather as part of another call: its name for messages, and
// what it is given. All ranks must agree on both.
func (w *World) AllGatherFor(ctx context.Context, name, with string, data []byte) ([][]byte, error) {
	c, err := w.collect(ctx, opOf(name, with, nil), data)
	if err != nil {
		return nil, err
	}
	return c.sink.(*keep).parts, nil
}

// Broadcast gives every rank the bytes of root. data counts at root only.
func (w *World) Broadcast(ctx context.Context, data []byte, root int) ([]byte, error) {
	if err := w.checkRoot(root); err != nil {
		return nil, err
	}
	if w.rank != root {
		data = nil
	}
	c, err := w.collect(ctx, opOf("malt.broadcast", fmt.Sprintf("root=%d", root), nil), data)
	if err != nil {
		return nil, err
	}
	return c.sink.(*keep).parts[root], nil
}

func (w *World) checkRoot(root int) error {
	if root < 0 || root >= w.size {
		return say.Errorf(ErrInvalid, "root=%d is not a rank: a number from 0 to %d is expected", root, w.size-1).In("malt.broadcast")
	}
	return nil
}

// AllReduce combines data, elements of dt, over all ranks in place, to the same
// bits on every rank. op: mean, sum, min, max. On an error data is unchanged.
func (w *World) AllReduce(ctx context.Context, data []byte, dt reduce.DType, op string) error {
	return w.AllReduceArray(ctx, data, Array{DType: dt, Count: len(data) / max(1, dt.Size())}, op)
}

// AllReduceArray is AllReduce of an array, on whose shape all ranks must agree.
func (w *World) AllReduceArray(ctx context.Context, data []byte, a Array, op string) error {
	dt := a.DType
	if dt != reduce.Float32 && dt != reduce.Float64 {
		return wrongType("the array", dt)
	}
	if len(data)%dt.Size() != 0 {
		return say.Errorf(ErrInvalid, "%d bytes are not a whole number of %s elements", len(data), dt)
	}
	if err := a.checkShape("the array"); err != nil {
		return err
	}
	o, err := overRanks("malt.allreduce", op)
	if err != nil {
		return err
	}
	return w.allReduce(ctx, call{key: reduction("malt.allreduce", a.String(), o, nil)}, data, []run{{dt, 0, len(data)}}, o)
}

// overRanks is the fold of all ranks' values that is called op.
func overRanks(what, op string) (reduce.Op, error) {
	o, err := reduce.ParseOp(op)
	if err != nil || o == reduce.Replace || o == reduce.MeanReceived {
		return 0, say.Unknown(ErrInvalid, "op", op, "mean", "sum", "min", "max").In(what)
	}
	return o, nil
}

// reduction is what all ranks of an allreduce must agree on.
func reduction(call, values string, op reduce.Op, of *Segment) string {
	return opOf(call, fmt.Sprintf("%s, %q", values, op), of)
}

// allReduce is AllReduce over runs of different types, of an object or of none.
func (w *World) allReduce(ctx context.Context, which call, data []byte, runs []run, op reduce.Op) error {
	_, err := w.start(ctx, which, data, func() *collective {
		return w.collective(which.key, data, &combine{op: op, runs: runs, dst: data})
	})
	return err
}

// scratchOf is memory for a result of n bytes, kept for the next call.
func (w *World) scratchOf(n int) ([]byte, error) {
	if n > len(w.scratch) {
		b, err := w.t.Map(n)
		if err != nil {
			return nil, err
		}
		if w.scratch != nil {
			if err := w.t.Unmap(w.scratch); err != nil {
				return nil, err
			}
		}
		w.scratch = b
	}
	return w.scratch[:n], nil
}

// collect makes the collective call op that keeps all ranks' data, or goes on
// with it.
func (w *World) collect(ctx context.Context, op string, data []byte) (*collective, error) {
	return w.start(ctx, call{key: op}, data, func() *collective { return w.collective(op, data, &keep{}) })
}

// start makes the collective call that begin sets up for data, or goes on with
// it: then data may lie elsewhere than before.
func (w *World) start(ctx context.Context, which call, data []byte, begin func() *collective) (*collective, error) {
	op, err := w.run(ctx, which, func() (stepper, error) {
		c := begin()
		c.about = which.of
		return c, nil
	}, func(op stepper) error {
		return op.(*collective).moveTo(data)
	})
	c, _ := op.(*collective)
	return c, err
}

// run is gate.run for the calls of the job.
func (w *World) run(ctx context.Context, which call, begin func() (stepper, error), again func(stepper) error) (stepper, error) {
	return w.gate.run(ctx, w, w, which, false, func() (stepper, error) {
		w.mu.Lock()
		closed := w.closed
		w.mu.Unlock()
		if closed {
			return nil, say.Errorf(ErrClosed, "%s: this process has left the job", callOf(which.key)).In(callOf(which.key))
		}
		return begin()
	}, again)
}

// Cancel gives up the collective call that keeps its place after a timeout, if
// there is one. Ranks that need this one in it get ErrLeft. ErrBusy: another
// goroutine is inside a call.
func (w *World) Cancel() error { return w.gate.cancel(w) }

// open lists the objects of this rank.
func (w *World) open() []*Segment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.objects
}

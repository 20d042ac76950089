package libmalt

import (
	"context"
	"fmt"
	"slices"

	"malt/internal/say"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
)

// ErrInterrupted is the error of a context that ended because its caller wanted it
// to, before its time.
var ErrInterrupted = core.ErrInterrupted

// Patient is a context that a call asks, when it has ended, whether to go on.
type Patient = core.Patient

// Drowsy is a context that tells before it sleeps.
type Drowsy = core.Drowsy

// Barrier waits until every rank is in its barrier.
func (w *World) Barrier(ctx context.Context) error {
	_, err := w.collectKept(ctx, core.OpOf("malt.barrier", "", nil), nil)
	return err
}

// AllGather gives every rank every rank's bytes, which may differ in length.
func (w *World) AllGather(ctx context.Context, data []byte) ([][]byte, error) {
	return w.AllGatherFor(ctx, "malt.allgather", "", data)
}

// AllGatherFor is AllGather as part of another call: its name for messages, and
// what it is given. All ranks must agree on both.
func (w *World) AllGatherFor(ctx context.Context, name, with string, data []byte) ([][]byte, error) {
	return w.collectKept(ctx, core.OpOf(name, with, nil), data)
}

// Broadcast gives every rank the bytes of root. data counts at root only.
func (w *World) Broadcast(ctx context.Context, data []byte, root int) ([]byte, error) {
	if err := w.checkRoot(root); err != nil {
		return nil, err
	}
	if w.job.Rank != root {
		data = nil
	}
	parts, err := w.collectKept(ctx, core.OpOf("malt.broadcast", fmt.Sprintf("root=%d", root), nil), data)
	if err == nil {
		err = w.rootOf("malt.broadcast", root)
	}
	if err != nil {
		return nil, err
	}
	return parts[root], nil
}

// rootOf fails, after a call that was to give all ranks the values of root, where that
// has died before they had them all.
func (w *World) rootOf(call string, root int) error {
	if w.job.View().Has(root) {
		return nil
	}
	if dead := core.DeathIn(w.job.T.State(root)); dead != nil {
		return dead.During(call)
	}
	return nil
}

func (w *World) checkRoot(root int) error { return w.checkRank("malt.broadcast", "root", root) }

func (w *World) checkRank(call, argument string, rank int) error {
	if rank < 0 || rank >= w.job.Size {
		return say.Errorf(ErrInvalid, "%s=%d is not a rank: expected a number from 0 to %d", argument, rank, w.job.Size-1).In(call)
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
	return w.allReduce(ctx, reduction("malt.allreduce", a.String(), o, nil), data, []reduce.Run{{Type: dt, Bytes: len(data)}}, o)
}

// overRanks is the fold of all ranks' values that is called op.
func overRanks(what, op string) (reduce.Op, error) {
	o, err := reduce.ParseOp(op)
	if err != nil || o == reduce.Replace || o == reduce.MeanReceived || o.Changes() {
		return 0, say.Unknown(ErrInvalid, "op", op, "mean", "sum", "min", "max").In(what)
	}
	return o, nil
}

// reduction is what all ranks of an allreduce must agree on.
func reduction(call, values string, op reduce.Op, of *core.Member) string {
	return core.OpOf(call, fmt.Sprintf("%s, %q", values, op), of)
}

// allReduce is AllReduce over runs of different types, of an object or of none.
func (w *World) allReduce(ctx context.Context, key string, data []byte, runs []reduce.Run, op reduce.Op) error {
	own := w.kept(data)
	err := w.job.Run(ctx, key, func() (core.Stepper, error) {
		return w.job.Collective(key, nil, data, &combine{op: op, runs: runs, dst: data}), nil
	})
	if err == nil {
		w.repeats(core.CallOf(key), len(data), func(ctx context.Context, next *World) error {
			return next.allReduce(ctx, key, slices.Clone(own), runs, op)
		})
	}
	return err
}

// collectKept is collect, also where ranks are back.
func (w *World) collectKept(ctx context.Context, op string, data []byte) ([][]byte, error) {
	own := w.kept(data)
	parts, err := w.collect(ctx, op, data)
	if err == nil {
		w.repeats(core.CallOf(op), len(data), func(ctx context.Context, next *World) error {
			_, err := next.collectKept(ctx, op, own)
			return err
		})
	}
	return parts, err
}

// collect makes the collective call op that keeps all ranks' data.
func (w *World) collect(ctx context.Context, op string, data []byte) ([][]byte, error) {
	k := &keep{}
	if err := w.job.Run(ctx, op, func() (core.Stepper, error) { return w.job.Collective(op, nil, data, k), nil }); err != nil {
		return nil, err
	}
	return k.parts, nil
}

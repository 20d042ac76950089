package processes

import (
	"context"
	"errors"
	"slices"

	"malt/libmalt"
	"malt/rdma"
)

// bit is what a rank adds to a sum that tells who is in it.
func bit(rank int) float64 { return float64(uint64(1) << rank) }

// called notes a collective call.
func (x *survivor) called(c collective, f func(e *event) error) error {
	if err := x.killInside(); err != nil {
		return err
	}
	e := x.note(event{Kind: called, Op: int64(c.kind), Call: x.page.at(x.me(), collectives).Load() + 1})
	if err := f(e); err != nil {
		return err
	}
	x.end(e)
	return nil
}

// make makes the object.
func (x *survivor) make() error {
	return x.called(collective{kind: configure}, func(*event) error {
		return x.together("making of the object", func(ctx context.Context) (err error) {
			x.obj, err = x.plan.object.hold(ctx, x.w, x.ph.options()+" ")
			return err
		})
	})
}

// meet makes a collective call of the plan. It checks what this rank alone can.
func (x *survivor) meet(c collective, next *planPhase) error {
	if c.kind == churn {
		return x.churn(c)
	}
	return x.called(c, func(e *event) error {
		switch c.kind {
		case barrier:
			return x.together("barrier", x.w.Barrier)
		case allReduce:
			return x.allReduce(c, e)
		case allGather:
			return x.allGather(c, e)
		case broadcast:
			var got []byte
			err := x.together("broadcast", func(ctx context.Context) (err error) {
				got, err = x.w.Broadcast(ctx, c.part(x.me()), c.root)
				return err
			})
			if err := x.rootLost(c, e, err); err != nil || e.Result.Lost {
				return err
			}
			return c.checkPart(got, c.root)
		case configure:
			return x.together("configure", func(ctx context.Context) error { return x.obj.s.Configure(ctx, next.options()) })
		}
		return x.meetOnVector(c, e)
	})
}

// rootLost notes that a broadcast has failed since its root is dead: the one error of a
// death that survivors get.
func (x *survivor) rootLost(c collective, e *event, err error) error {
	var dead *rdma.PeerError
	if errors.As(err, &dead) && dead.Rank == c.root && x.leftOut(c.root) {
		e.Result.Lost, err = true, nil
		x.tally.add("broadcasts of a dead root", 1)
	}
	return err
}

func (x *survivor) allReduce(c collective, e *event) error {
	data := make([]byte, max(8, c.bytes))
	e.Mine = bit(x.me())
	fill(data, 8, e.Mine)
	if err := x.together("allreduce", func(ctx context.Context) error {
		return x.w.AllReduce(ctx, data, libmalt.Float64, c.op)
	}); err != nil {
		return err
	}
	e.Result = resultOf([][]byte{data}, []libmalt.DType{libmalt.Float64})
	return nil
}

func (x *survivor) allGather(c collective, e *event) error {
	var got [][]byte
	if err := x.together("allgather", func(ctx context.Context) (err error) {
		got, err = x.w.AllGather(ctx, c.part(x.me()))
		return err
	}); err != nil {
		return err
	}
	for r := range got {
		if got[r] == nil {
			continue
		}
		if err := c.checkPart(got[r], r); err != nil {
			return err
		}
		e.Result.Set |= 1 << r
	}
	return nil
}

// meetOnVector is an allreduce or a broadcast of the vector. Then all have the same: what
// a sparse vector sends next, others add to that.
func (x *survivor) meetOnVector(c collective, e *event) (err error) {
	e.Mine = value(x.me(), x.obj.s.Clock())
	x.obj.fill(e.Mine)
	if c.kind == vectorAllReduce {
		err = x.together("allreduce of the vector", func(ctx context.Context) error { return x.obj.v.AllReduce(ctx, c.op) })
	} else {
		err = x.together("broadcast of the vector", func(ctx context.Context) error { return x.obj.v.Broadcast(ctx, c.root) })
		err = x.rootLost(c, e, err)
	}
	lost := e.Result.Lost
	e.Result = x.holds()
	e.Result.Lost = lost
	if !lost {
		for r := range x.models {
			copy(x.models[r], x.obj.s.Bytes())
		}
	}
	return err
}

// churn makes a second object, which has the values of the lowest rank that takes part,
// and closes it again after a step of bsp.
func (x *survivor) churn(c collective) error {
	var v *libmalt.Vector
	n := max(c.bytes/8, 1)
	first := make([]byte, n*8)
	fill(first, 8, bit(x.me()))
	f64 := []libmalt.DType{libmalt.Float64}
	if err := x.called(c, func(e *event) error {
		err := x.together("making of a vector", func(ctx context.Context) (err error) {
			v, err = x.w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float64, Count: n, Init: first}}, "churn", "fold=sum")
			return err
		})
		if err == nil {
			e.Result = resultOf([][]byte{v.Bytes()}, f64)
			x.memory = append(x.memory, &v.Bytes()[0])
		}
		return err
	}); err != nil {
		return err
	}
	fill(v.Bytes(), 8, bit(x.me()))
	if err := x.called(collective{kind: churnSync}, func(e *event) error {
		err := x.together("sync of a new vector", func(ctx context.Context) error {
			_, err := v.Sync(ctx, 1)
			return err
		})
		e.InPlace = shared(v.Bytes())
		e.Result = resultOf([][]byte{v.Bytes()}, f64)
		return err
	}); err != nil {
		return err
	}
	base := &v.Bytes()[0]
	if err := v.Close(); err != nil {
		return err
	}
	x.memory = slices.DeleteFunc(x.memory, func(b *byte) bool { return b == base })
	return x.w.Unmap(base)
}

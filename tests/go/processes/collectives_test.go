package processes

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"

	"malt/libmalt"
)

// collective is a call that all ranks make together.
type collective struct {
	kind  collectiveKind
	bytes int    // of what each rank contributes, about
	op    string // of an allreduce
	root  int
}

type collectiveKind int

const (
	barrier collectiveKind = iota
	allReduce
	allGather
	broadcast
	vectorAllReduce
	vectorBroadcast
	configure // to the next phase's graph and mode
	churn     // another vector is made, used and closed
	churnSync // the use of it, in the notes of survivors
)

var collectiveNames = [...]string{"barrier", "allreduce", "allgather", "broadcast", "allreduce of the vector", "broadcast of the vector", "configure", "churn", "sync of a new vector"}

func (c collective) String() string { return collectiveNames[c.kind] }

// renews tells whether the call gives the object new values or new boxes.
func (c collective) renews() bool {
	return c.kind == configure || c.kind == vectorAllReduce || c.kind == vectorBroadcast
}

func (p *plan) pickCollective(rnd *rand.Rand) collective {
	c := collective{
		kind: pick(rnd, barrier, barrier, allReduce, allGather, broadcast, vectorAllReduce, vectorAllReduce, vectorBroadcast, churn),
		// Below and above what travels with the header, in one chunk, and in a full queue.
		bytes: pick(rnd, 0, 8, 1000, 64<<10, 64<<10+8, 300_000, 1<<20+8, 3<<20) / 8 * 8,
		op:    pick(rnd, "sum", "min", "max", "mean"), root: rnd.IntN(p.ranks),
	}
	if p.object.segment() && (c.kind == vectorAllReduce || c.kind == vectorBroadcast) {
		c.kind = barrier
	}
	return c
}

// run makes the call and checks its result. call carries out one call with the
// timeouts that the plan asks for.
func (c collective) run(x *runner, next *planPhase, call func(what string, f func(context.Context) error) error) error {
	switch c.kind {
	case barrier:
		return call("barrier", x.w.Barrier)
	case allReduce:
		data := make([]byte, c.bytes)
		fill(data, 8, float64(x.me()+1))
		if err := call("allreduce", func(ctx context.Context) error {
			return x.w.AllReduce(ctx, data, libmalt.Float64, c.op)
		}); err != nil {
			return err
		}
		return c.checkReduced(data, 8, x.plan.ranks, func(r int) float64 { return float64(r + 1) })
	case allGather:
		return c.allGather(x, call)
	case broadcast:
		var got []byte
		if err := call("broadcast", func(ctx context.Context) (err error) {
			got, err = x.w.Broadcast(ctx, c.part(x.me()), c.root)
			return err
		}); err != nil {
			return err
		}
		return c.checkPart(got, c.root)
	case vectorAllReduce:
		return c.vectorAllReduce(x, call)
	case vectorBroadcast:
		x.obj.fill(value(x.me(), x.obj.s.Clock()))
		if err := call("broadcast of the vector", func(ctx context.Context) error { return x.obj.v.Broadcast(ctx, c.root) }); err != nil {
			return err
		}
		return x.checkVector(value(c.root, x.reached(c.root)))
	case configure:
		return call("configure", func(ctx context.Context) error { return x.obj.s.Configure(ctx, next.options()) })
	case churn:
		return c.churn(x, call)
	}
	return nil
}

// part is what a rank contributes: its length differs from rank to rank.
func (c collective) part(rank int) []byte {
	return bytes.Repeat([]byte{byte(rank + 1)}, c.bytes*(rank+1)/8)
}

func (c collective) checkPart(got []byte, rank int) error {
	if want := c.part(rank); !bytes.Equal(got, want) {
		return fmt.Errorf("%s: %d bytes of rank %d, expected %d and the same", c, len(got), rank, len(want))
	}
	return nil
}

func (c collective) allGather(x *runner, call func(string, func(context.Context) error) error) error {
	var got [][]byte
	if err := call("allgather", func(ctx context.Context) (err error) {
		got, err = x.w.AllGather(ctx, c.part(x.me()))
		return err
	}); err != nil {
		return err
	}
	for r := range got {
		if err := c.checkPart(got[r], r); err != nil {
			return err
		}
	}
	return nil
}

func (c collective) vectorAllReduce(x *runner, call func(string, func(context.Context) error) error) error {
	x.obj.fill(value(x.me(), x.obj.s.Clock()))
	op := c.op
	if op == "mean" {
		op = "max"
	}
	if err := call("allreduce of the vector", func(ctx context.Context) error { return x.obj.v.AllReduce(ctx, op) }); err != nil {
		return err
	}
	got, ok, err := x.obj.read(x.obj.s.Bytes())
	if err != nil || !ok {
		return err
	}
	want := reduced(op, x.plan.ranks, func(r int) float64 { return value(r, x.reached(r)) })
	if got != want {
		return fmt.Errorf("%s with %s gives %v, expected %v", c, op, got, want)
	}
	return nil
}

// checkReduced holds the result of a reduction against that of the ranks' values.
func (c collective) checkReduced(data []byte, size, ranks int, of func(rank int) float64) error {
	got, ok, err := constant(data, size)
	if want := reduced(c.op, ranks, of); err != nil || ok && got != want {
		return fmt.Errorf("%s with %s gives %v (%v), expected %v", c, c.op, got, err, want)
	}
	return nil
}

func reduced(op string, ranks int, of func(rank int) float64) float64 {
	all := make([]int, ranks)
	for r := range all {
		all[r] = r
	}
	return reducedOf(op, all, of)
}

// reducedOf is that of the values of these ranks.
func reducedOf(op string, ranks []int, of func(rank int) float64) float64 {
	x := of(ranks[0])
	for _, r := range ranks[1:] {
		switch y := of(r); op {
		case "min":
			x = min(x, y)
		case "max":
			x = max(x, y)
		default:
			x += y
		}
	}
	if op == "mean" {
		x /= float64(len(ranks))
	}
	return x
}

// churn makes a second object, which all ranks close again after a step of bsp.
func (c collective) churn(x *runner, call func(string, func(context.Context) error) error) error {
	var v *libmalt.Vector
	n := max(c.bytes/8, 1)
	if err := call("making of a vector", func(ctx context.Context) (err error) {
		v, err = x.w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float64, Count: n}}, "churn", "fold=sum")
		return err
	}); err != nil {
		return err
	}
	first := &v.Bytes()[0]
	x.memory = append(x.memory, first)
	fill(v.Bytes(), 8, float64(x.me()+1))
	if err := call("sync of a new vector", func(ctx context.Context) error {
		_, err := v.Sync(ctx, 1)
		return err
	}); err != nil {
		return err
	}
	got, _, err := constant(v.Bytes(), 8)
	if want := reduced("sum", x.plan.ranks, func(r int) float64 { return float64(r + 1) }); err != nil || got != want {
		return fmt.Errorf("sync of a new vector gives %v (%v), expected %v", got, err, want)
	}
	if err := v.Close(); err != nil {
		return err
	}
	x.memory = x.memory[:len(x.memory)-1]
	return x.w.Unmap(first)
}

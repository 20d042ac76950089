package libmalt

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"malt/internal/say"
	"malt/libmalt/boxes"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/rows"
	"malt/libmalt/rule"
	"malt/libmalt/spvec"
)

// Vector is an object of numbers with a fold.
type Vector struct {
	Object
	arrays []reduce.Run // one per array
	runs   []reduce.Run // neighbours of one type joined
	rows   spvec.Shape
	dense  error    // why it cannot be sparse
	inRows bool     // it was said how long rows are
	keyed  bool     // they have ids
	ids    rows.Ids // while it is made

	reductions [reduce.MeanChanges + 1]string // what each allreduce is called, once it was made
	reduction  *core.Collective               // the last allreduce, which the next one reuses
	sink       combine                        // where its messages go

	made made    // what it was made with
	of   *Vector // what it is in another world, where it goes on for that; nil: nothing
}

// NewVector makes a vector of arrays that travel as one. Collective: all ranks
// must agree on shapes and types, the name and the options but fold=. An empty
// name is numbered. Options: graph, allow_disconnected, consistency, fold,
// start, sparse.
func (w *World) NewVector(ctx context.Context, arrays []Array, name, options string) (*Vector, error) {
	v := &Vector{}
	v.rows, v.dense = shapeOf(arrays)
	v.inRows = slices.ContainsFunc(arrays, func(a Array) bool { return a.Row != 0 })
	v.keyed = slices.ContainsFunc(arrays, func(a Array) bool { return a.IDs != nil || a.Wants != nil })
	shape := describe(arrays)
	if v.keyed {
		var err error
		if v.rows, err = keyedShape(arrays); err != nil {
			return nil, err
		}
		v.ids = rows.Ids{Rows: arrays[0].IDs, Wants: arrays[0].Wants}
		shape = describeKeyed(arrays[0], v.rows)
	}
	bytes, err := v.layout(arrays)
	if err != nil {
		return nil, err
	}
	init := func() {
		for i, a := range arrays {
			reduce.Copy(v.Array(i), a.Init)
		}
	}
	if err := w.makeVector(ctx, v, made{name, options, shape, bytes}, init); err != nil {
		return nil, err
	}
	v.ids = rows.Ids{} // they are the caller's
	return v, nil
}

// layout places the arrays one after the other, each aligned to its elements.
func (v *Vector) layout(arrays []Array) (bytes int, err error) {
	if len(arrays) == 0 {
		return 0, say.Errorf(ErrInvalid, "a vector of no arrays: expected at least one, of any length")
	}
	const most = math.MaxInt64 / 4
	for i, a := range arrays {
		if a.DType != Float32 && a.DType != Float64 {
			return 0, wrongType(fmt.Sprintf("array %d", i), a.DType)
		}
		size := a.DType.Size()
		if a.Count < 0 || a.Count > (most-bytes)/size-1 {
			return 0, say.Errorf(ErrInvalid, "array %d has %d elements: expected a number of at least 0 that fits into memory", i, a.Count)
		}
		if err := a.checkShape(fmt.Sprintf("array %d", i)); err != nil {
			return 0, err
		}
		if a.Init != nil && len(a.Init) != a.Count*size {
			return 0, say.Errorf(ErrInvalid, "array %d has %d bytes of first values: expected %d", i, len(a.Init), a.Count*size).At("it has %d elements of %s", a.Count, a.DType)
		}
		bytes = (bytes + size - 1) / size * size
		r := reduce.Run{Type: a.DType, Off: bytes, Bytes: a.Count * size}
		v.arrays = append(v.arrays, r)
		if n := len(v.runs); n > 0 && v.runs[n-1].Type == r.Type {
			v.runs[n-1].Bytes += r.Bytes
		} else {
			v.runs = append(v.runs, r)
		}
		bytes += r.Bytes
	}
	return bytes, nil
}

// Arrays is the number of arrays, Array the memory of one of them.
func (v *Vector) Arrays() int { return len(v.arrays) }

// Array is the memory of array i.
func (v *Vector) Array(i int) []byte {
	r := v.arrays[i]
	return v.Data[r.Off : r.Off+r.Bytes : r.Off+r.Bytes]
}

// Scatter sends the present values to the ranks in to, nil meaning all
// receivers; weight is what they count in a mean. It returns payload bytes times
// receivers. Only notify-ack waits.
func (v *Vector) Scatter(ctx context.Context, to []int, weight float64) (int, error) {
	return v.ScatterRows(ctx, nil, to, weight)
}

// ScatterRows is Scatter of a sparse vector that sends these rows, in any order,
// in place of those that it finds to have changed, or not to be zero. nil: those
// that it finds.
func (v *Vector) ScatterRows(ctx context.Context, rows []int64, to []int, weight float64) (int, error) {
	return v.way.Send(ctx, len(v.Data), rows, to, weight)
}

// Gather folds what has arrived, as the consistency says, with fold, "" meaning
// the vector's own. It returns how many updates it folded.
func (v *Vector) Gather(ctx context.Context, fold string) (int, error) {
	op := v.mode.Load().fold
	if fold != "" {
		var err error
		if op, err = reduce.ParseOp(fold); err != nil {
			return 0, say.As(ErrInvalid, err)
		}
		if own := v.mode.Load().fold; op != own && (op.Changes() || own.Changes()) {
			return 0, say.Errorf(ErrInvalid, "%s: fold=%s does not go with this vector, which has fold=%s", v.Called("gather"), op, own).
				Try("Leave fold= out, or make another vector with it.")
		}
	}
	return v.way.Gather(ctx, op)
}

// Sync scatters to all receivers, then gathers with the vector's fold. After a
// timeout Gather folds what comes late. In lock-step on a graph in which
// all send to all the vectors are averaged in place, where they have been made
// for that: with the same result, and with fewer bytes moved.
func (v *Vector) Sync(ctx context.Context, weight float64) (int, error) {
	return v.SyncRows(ctx, nil, weight)
}

// SyncSlack is Sync with that slack, in place of that of the consistency, in ssp and async.
func (v *Vector) SyncSlack(ctx context.Context, weight float64, slack uint64) (int, error) {
	if slack > rule.MaxN {
		return 0, say.Errorf(ErrInvalid, "slack=%d: expected a number from 0 to %d", slack, rule.MaxN)
	}
	if v.w.again != nil {
		return 0, say.Errorf(ErrUnsupported, "slack=%d does not go with on_death=replace", slack).Try("Make the vector with consistency=ssp:%d, or take on_death=continue.", slack)
	}
	return v.way.Sync(ctx, nil, weight, int(slack), v.mode.Load().fold)
}

// Age is, of a vector of changes, how many clocks of the rank that was farthest behind the
// last gather lacked, of those of which changes may be missing.
func (v *Vector) Age() uint64 {
	if v.keyed { // its way may change
		return 0
	}
	return v.way.Age()
}

// SyncRows is Sync with a scatter of these rows; see ScatterRows.
func (v *Vector) SyncRows(ctx context.Context, rows []int64, weight float64) (int, error) {
	return v.way.Sync(ctx, rows, weight, -1, v.mode.Load().fold)
}

// AllReduce makes all replicas equal: the combination of all ranks' values, in
// place, whatever graph and consistency. What was unseen counts as seen.
// Collective. op: mean, sum, min, max, or of changes the vector's own fold: all changes
// of all ranks; what a rank has not sent yet has the weight of its last scatter, or 1. After an
// error parts of the values may be combined already.
func (v *Vector) AllReduce(ctx context.Context, op string) error {
	return v.AllReduceWeight(ctx, op, -1)
}

// AllReduceWeight is AllReduce with that weight for what this rank has not sent yet, unless it is negative.
func (v *Vector) AllReduceWeight(ctx context.Context, op string, weight float64) error {
	if err := cmp.Or(v.alike("allreduce"), boxes.CheckWeight(max(weight, 0))); err != nil {
		return err
	}
	return v.Alone(func() error {
		v.w.keepsOut("v.allreduce", beforeSync)
		o, err := reduce.ParseOp(op)
		if err == nil && o.Changes() && o == v.mode.Load().fold {
			share, since := v.way.Share(weight)
			key := reduction(v.Called("allreduce"), fmt.Sprintf("%s since call %d", describeRuns(v.runs), since), o, &v.Member)
			if err = v.allReduce(ctx, key, reduce.Sum, share); err == nil {
				v.way.Settled(v.reduction.Ranks())
			}
			return err
		}
		if err != nil || v.reductions[o] == "" {
			what := v.Called("allreduce")
			if o, err = overRanks(what, op); err != nil {
				return err
			}
			v.reductions[o] = reduction(what, describeRuns(v.runs), o, &v.Member)
		}
		if err = v.allReduce(ctx, v.reductions[o], o, v.Data); err == nil {
			v.way.Settled(nil)
		}
		return err
	})
}

// allReduce takes the route, or goes by messages. share is what this rank adds.
func (v *Vector) allReduce(ctx context.Context, key string, op reduce.Op, share []byte) error {
	err := v.Job.Run(ctx, key, func() (core.Stepper, error) {
		v.sink = combine{op: op, runs: v.runs, dst: v.Data, from: reduce.None, way: v.way}
		c := v.reduction
		if c == nil {
			c = v.Job.Collective(key, &v.Member, share, &v.sink)
			v.reduction = c
		} else {
			c.Again(v.w.job, key, &v.Member, share, &v.sink)
		}
		if o := v.way.AllReduce(c, op); o != nil {
			return o, nil
		}
		return c, nil
	})
	if core.DeathIn(err) != nil { // another rank may have given the call up for it: the words are the vector's
		err = cmp.Or(v.way.Inherit(v.Job.Adopt().Ranks), err)
	}
	if err == nil && v.sink.scratch != nil { // it went by messages
		v.Brought(v.sink.from, v.reduction.Ranks())
	}
	return err
}

// Broadcast gives every rank the values of root, in place. Collective.
func (v *Vector) Broadcast(ctx context.Context, root int) error {
	if err := v.w.checkRoot(root); err != nil {
		return err
	}
	if err := v.alike("broadcast"); err != nil {
		return err
	}
	v.w.keepsOut("v.broadcast", beforeSync)
	return v.Alone(func() error {
		name := core.OpOf(v.Called("broadcast"), fmt.Sprintf("root=%d", root), &v.Member)
		err := v.Job.Run(ctx, name, func() (core.Stepper, error) {
			return v.Job.Collective(name, &v.Member, nil, &fill{root: root, dst: v.Data}), nil
		})
		if err == nil {
			err = v.w.rootOf(v.Called("broadcast"), root)
		}
		if err == nil {
			v.way.Settled(nil)
		}
		return err
	})
}

// Row is the length in bytes of a row of a sparse vector; 0: it is not sparse.
func (v *Vector) Row() int {
	if v.keyed { // as in Age
		return 0
	}
	return v.way.Row()
}

// Whole is the i-th of the updates that Begin has found, laid out as the vector
// is, valid until End. Rows that the update does not mention are, of a model,
// those of the vector at the first call for i, of a gradient zero.
func (v *Vector) Whole(i int) ([]byte, error) { return v.way.Whole(i) }

package libmalt

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"time"

	"malt/internal/say"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// DType is an element type.
type DType = reduce.DType

const (
	Float32 = reduce.Float32
	Float64 = reduce.Float64
)

// Array is one array of a vector.
type Array struct {
	DType DType
	Count int
	Row   int    // elements of a row of a sparse vector; 0: 1
	Init  []byte // first values; nil: zeros
	Shape []int  // lengths of its axes; nil: one axis
}

// String is "float32[500x1000]".
func (a Array) String() string {
	shape := a.Shape
	if shape == nil {
		shape = []int{a.Count}
	}
	text := append([]byte(a.DType.String()), '[')
	for i, n := range shape {
		if i > 0 {
			text = append(text, 'x')
		}
		text = strconv.AppendInt(text, int64(n), 10)
	}
	return string(append(text, ']'))
}

// checkShape refuses a shape that has not as many elements as the array, which is
// called what.
func (a Array) checkShape(what string) error {
	n := 1
	for _, l := range a.Shape {
		if l < 0 || l > 0 && n > math.MaxInt/l {
			n = -1
			break
		}
		n *= l
	}
	if a.Shape != nil && n != a.Count {
		return say.Errorf(ErrInvalid, "%s has %d elements, and the shape %v", what, a.Count, a.Shape).Try("The product of the lengths must be the number of elements.")
	}
	return nil
}

// wrongType is the error for what has elements of that type.
func wrongType(what string, dt DType) error {
	return say.Errorf(ErrInvalid, "%s has element type %d: float32 (%d) or float64 (%d) is expected", what, dt, Float32, Float64)
}

// Vector is a segment of numbers with a fold.
type Vector struct {
	Segment
	arrays  []run // one per array
	runs    []run // neighbours of one type joined
	srcs    [][]byte
	weights []float64
	adder   adder
	rows    spvec.Shape
	dense   error // why it cannot be sparse
	inRows  bool  // it was said how long rows are

	reductions [reduce.Replace + 1]string // what each allreduce is called, once it was made
	reducing   reducing
}

// NewVector makes a vector of arrays that travel as one. Collective: all ranks
// must agree on shapes and types, the name and the options but fold=. An empty
// name is numbered. Options: graph, allow_disconnected, consistency, fold,
// start, sparse.
func (w *World) NewVector(ctx context.Context, arrays []Array, name, options string) (*Vector, error) {
	v := &Vector{}
	v.rows, v.dense = shapeOf(arrays)
	v.inRows = slices.ContainsFunc(arrays, func(a Array) bool { return a.Row != 0 })
	bytes, err := v.layout(arrays)
	if err != nil {
		return nil, err
	}
	v.kind = "vector"
	init := func() {
		for i, a := range arrays {
			reduce.Copy(v.Array(i), a.Init)
		}
	}
	made, err := w.makeSegment(ctx, v, &v.Segment, name, options, modeKeys, bytes, describe(arrays), init)
	if err != nil {
		return nil, err
	}
	return made.(*Vector), nil
}

// NewSegment makes a segment of that many opaque bytes. Collective, as
// NewVector. Options: graph, allow_disconnected, consistency.
func (w *World) NewSegment(ctx context.Context, bytes int, name, options string) (*Segment, error) {
	s := &Segment{kind: "segment"}
	if bytes < 0 {
		return nil, say.Errorf(ErrInvalid, "a segment of %d bytes: at least 0 are expected", bytes)
	}
	made, err := w.makeSegment(ctx, s, s, name, options, modeKeys[:3], bytes, fmt.Sprintf("%d bytes", bytes), func() {})
	if err != nil {
		return nil, err
	}
	return made.(*Segment), nil
}

// layout places the arrays one after the other, each aligned to its elements.
func (v *Vector) layout(arrays []Array) (bytes int, err error) {
	if len(arrays) == 0 {
		return 0, say.Errorf(ErrInvalid, "a vector of no arrays: at least one is expected, of any length")
	}
	const most = math.MaxInt64 / 4
	for i, a := range arrays {
		if a.DType != Float32 && a.DType != Float64 {
			return 0, wrongType(fmt.Sprintf("array %d", i), a.DType)
		}
		size := a.DType.Size()
		if a.Count < 0 || a.Count > (most-bytes)/size-1 {
			return 0, say.Errorf(ErrInvalid, "array %d has %d elements: a number of at least 0 that fits into memory is expected", i, a.Count)
		}
		if err := a.checkShape(fmt.Sprintf("array %d", i)); err != nil {
			return 0, err
		}
		if a.Init != nil && len(a.Init) != a.Count*size {
			return 0, say.Errorf(ErrInvalid, "array %d has %d bytes of first values: %d are expected", i, len(a.Init), a.Count*size).At("it has %d elements of %s", a.Count, a.DType)
		}
		bytes = (bytes + size - 1) / size * size
		r := run{a.DType, bytes, a.Count * size}
		v.arrays = append(v.arrays, r)
		if n := len(v.runs); n > 0 && v.runs[n-1].dtype == r.dtype {
			v.runs[n-1].bytes += r.bytes
		} else {
			v.runs = append(v.runs, r)
		}
		bytes += r.bytes
	}
	return bytes, nil
}

// Arrays is the number of arrays, Array the memory of one of them.
func (v *Vector) Arrays() int { return len(v.arrays) }

// Array is the memory of array i.
func (v *Vector) Array(i int) []byte {
	r := v.arrays[i]
	return v.data[r.off : r.off+r.bytes : r.off+r.bytes]
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
	return v.scatter(ctx, len(v.data), rows, to, weight)
}

// Begin is Segment.Begin. What it returns of a sparse vector are rows and their
// values; Whole shows one laid out as the vector.
func (v *Vector) Begin(ctx context.Context) ([]Update, error) {
	if err := v.begin(ctx); err != nil {
		return nil, err
	}
	v.present()
	return v.updates, nil
}

// begin is Begin for folds of this package.
func (v *Vector) begin(ctx context.Context) error {
	_, err := v.Segment.Begin(ctx)
	if err == nil {
		if err = v.decode(); err != nil {
			err = firstOf(err, v.End(true))
		}
	}
	return err
}

// Gather folds what has arrived, as the consistency says, with fold, "" meaning
// the vector's own. It returns how many updates it folded.
func (v *Vector) Gather(ctx context.Context, fold string) (int, error) {
	op := v.anyMode().fold
	if fold != "" {
		var err error
		if op, err = reduce.ParseOp(fold); err != nil {
			return 0, say.As(ErrInvalid, err)
		}
	}
	if err := v.begin(ctx); err != nil {
		return 0, err
	}
	return v.foldAll(op)
}

// Sync scatters to all receivers, then gathers with the vector's fold. After a
// timeout the same call goes on where it was. In lock-step on a graph in which
// all send to all the vectors are averaged in place, where they have been made
// for that: with the same result, and with fewer bytes moved.
func (v *Vector) Sync(ctx context.Context, weight float64) (int, error) {
	return v.SyncRows(ctx, nil, weight)
}

// SyncRows is Sync with a scatter of these rows; see ScatterRows.
func (v *Vector) SyncRows(ctx context.Context, rows []int64, weight float64) (int, error) {
	op := &v.syncing
	err := v.run(ctx, "sync", true, op, func() error { return op.begin(v, rows, weight) })
	if err != nil {
		return 0, err
	}
	if op.stage < scatters {
		v.gate.mu.Unlock()
		return v.w.size - 1, nil
	}
	v.held.Store(true)
	if err := v.decode(); err != nil {
		return 0, firstOf(err, v.End(true))
	}
	return v.foldAll(v.mode.fold)
}

// foldAll folds what Begin has found, and ends that.
func (v *Vector) foldAll(op reduce.Op) (int, error) {
	n := len(v.updates)
	if v.averagedAt > 0 {
		n = v.w.size - 1 // it has been done in place
	}
	for _, u := range v.updates {
		if v.sparse == nil && len(u.Data) != len(v.data) {
			err := say.Errorf(rdma.ErrCorrupt, "%s: rank %d sent %d bytes, expected %d", v.called("gather"), u.Rank, len(u.Data), len(v.data))
			return 0, firstOf(err, v.End(true))
		}
	}
	v.fold(op, v.updates)
	return n, v.End(true)
}

// fold combines the updates into the vector. Operands are added in the order of
// ranks, this rank's own in its place, so that ranks that fold the same set get
// the same bits. Where all send to all from several hosts the order is that of
// subtotal.go.
func (v *Vector) fold(op reduce.Op, updates []Update) {
	if len(updates) == 0 || len(v.data) == 0 {
		return
	}
	start := time.Now()
	if slices.ContainsFunc(updates, func(u Update) bool { return u.Rows != nil }) {
		v.foldSparse(op)
		v.stats.FoldTime += time.Since(start)
		return
	}
	if op == reduce.Replace {
		// The newest overwrites; of equally new ones that of the lowest rank.
		newest := slices.MaxFunc(updates, func(a, b Update) int { return cmp.Compare(a.Clock, b.Clock) })
		reduce.Copy(v.data, newest.Data)
		v.stats.FoldTime += time.Since(start)
		return
	}
	if v.ch.everyone && v.sparse == nil && v.w.hosts.several() && op != reduce.MeanReceived {
		v.foldByHost(op, updates)
		v.stats.FoldTime += time.Since(start)
		return
	}
	v.srcs, v.weights = v.srcs[:0], v.weights[:0]
	own := op != reduce.MeanReceived
	add := func(data []byte, weight float64) {
		v.srcs, v.weights = append(v.srcs, data), append(v.weights, weight)
	}
	for _, u := range updates {
		if own && u.Rank > v.w.rank {
			add(v.data, v.weight)
			own = false
		}
		add(u.Data, u.Weight)
	}
	if own {
		add(v.data, v.weight)
	}
	weights := v.weights
	if !slices.ContainsFunc(weights, func(w float64) bool { return w != 1 }) {
		weights = nil
	}
	foldRuns(op, v.runs, 0, v.data, v.srcs, weights, 0)
	clear(v.srcs)
	v.stats.FoldTime += time.Since(start)
}

// AllReduce makes all replicas equal: the combination of all ranks' values, in
// place, whatever graph and consistency. What was unseen counts as seen.
// Collective. op: mean, sum, min, max. After an error parts of the values may be
// combined already.
func (v *Vector) AllReduce(ctx context.Context, op string) error {
	return v.alone(func() error {
		o, err := reduce.ParseOp(op)
		if err != nil || v.reductions[o] == "" {
			what := v.called("allreduce")
			if o, err = overRanks(what, op); err != nil {
				return err
			}
			v.reductions[o] = reduction(what, describeRuns(v.runs), o, &v.Segment)
		}
		if err = v.allReduce(ctx, v.reductions[o], o); err == nil {
			v.settle()
		}
		return err
	})
}

// Broadcast gives every rank the values of root, in place. Collective.
func (v *Vector) Broadcast(ctx context.Context, root int) error {
	if err := v.w.checkRoot(root); err != nil {
		return err
	}
	return v.alone(func() error {
		name := opOf(v.called("broadcast"), fmt.Sprintf("root=%d", root), &v.Segment)
		_, err := v.w.start(ctx, call{name, &v.Segment}, v.sentBy(root), func() *collective { return v.broadcast(name, &fill{root: root}) })
		if err == nil {
			v.settle()
		}
		return err
	})
}

// sentBy is what this rank sends in a broadcast of root's values.
func (v *Vector) sentBy(root int) []byte {
	if v.w.rank == root {
		return v.data
	}
	return nil
}

// broadcast is the collective that copies root's values.
func (v *Vector) broadcast(name string, f *fill) *collective {
	if v.w.rank != f.root {
		f.dst = v.data
	}
	return v.w.collective(name, v.sentBy(f.root), f)
}

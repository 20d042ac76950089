package shards

import (
	"slices"
	"strconv"

	"malt/graphs"
	"malt/libmalt/engine"
	"malt/libmalt/filter"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// Engine carries a vector. Last of its totals is what is to be pushed.
type Engine struct {
	engine.Changes
	core   *Core
	shards []shard  // by part
	via    []int    // ranks of any part's via
	sum    []byte   // of the part that this rank keeps: the values and all changes
	theirs [][]byte // by worker that keeps no part, where the job goes on without it: its changes in the sum
	rows   *rows    // nil: a message has all of a part
	from   int      // the rank that has brought NaN or infinity into it, as of Brought
	srcs   [][]byte
	reach  []reach
}

// shard is what a rank has of a part.
type shard struct {
	lo, hi int         // its bytes
	push   rdma.Outbox // at a worker: to the keeper
	sum    rdma.Outbox // to those below; nil: there are none
	via    []int       // ranks through which this one has the sum, the nearest first; none: it keeps it
	below  []int
	way    []byte // at a worker: what was pushed last, in the outbox, until it is in the view
	moved  int    // at a worker: the bytes of the last push
	pushes uint64 // at a worker: how many it has made
	rows   partRows
}

var _ core.Engine = (*Engine)(nil)

// lineBytes is what parts are cut at: two ranks do not write to the same cache line.
const lineBytes = 64

// New is for a vector of this length on g, with op, a fold of changes. Where its rows have a shape, only those
// that have changed are sent, and that f lets through.
func New(o core.Object, g *graphs.Graph, op reduce.Op, bytes int, row spvec.Shape, f filter.Filter) (*Engine, error) {
	e := newEngine(o, g, bytes, row, f)
	return e, e.Start(e.memory(), func(mapped []byte) { e.lay(mapped, op) })
}

func newEngine(o core.Object, g *graphs.Graph, bytes int, row spvec.Shape, f filter.Filter) *Engine {
	e := &Engine{}
	cut := lineBytes
	if row.Elem > 0 {
		e.rows, cut = &rows{filter: f}, row.RowBytes()
		for cut%lineBytes != 0 {
			cut += row.RowBytes()
		}
	}
	pieces := max(1, (bytes+cut-1)/cut)
	keepers := min(g.Keepers(), pieces) // nobody keeps nothing
	below := make([][]int, keepers)
	for q := range keepers {
		above := g.Above(q)
		s := shard{lo: pieces * q / keepers * cut, hi: min(pieces*(q+1)/keepers*cut, bytes)}
		if s.moved = s.bytes(); e.rows != nil {
			s.rows.shape = spvec.Shape{Rows: s.bytes() / row.RowBytes(), Width: row.Width, Elem: row.Elem}
		}
		for r, from := range above {
			if from == o.Rank() {
				s.below = append(s.below, r)
			}
			if slices.Contains(through(above, r), o.Rank()) {
				below[q] = append(below[q], r)
			}
		}
		s.via = through(above, o.Rank())
		e.via = append(e.via, s.via...)
		e.shards = append(e.shards, s)
	}
	slices.Sort(e.via)
	e.via = slices.Compact(e.via)
	e.core = NewCore(o.Rank(), o.Size(), below)
	e.Use(o, e, e.core, keepers)
	if o.Survives() && e.keeps() {
		e.theirs = make([][]byte, o.Size()-keepers)
	}
	return e
}

// through is by which ranks a sum comes to a rank, the nearest first: see graphs.Above.
func through(above []int, rank int) (via []int) {
	for r := above[rank]; r >= 0; r = above[r] {
		via = append(via, r)
	}
	return via
}

// memory is how much lay takes.
func (e *Engine) memory() int {
	all := e.shards[len(e.shards)-1].hi
	n := reduce.TotalsBytes(e.O.Runs()) + all
	switch {
	case e.rows != nil:
		n += 2 * all
	case e.keeps():
		n += e.own().bytes()
	}
	if len(e.theirs) > 0 {
		n += len(e.theirs) * e.own().bytes()
	}
	return n
}

func (e *Engine) lay(mapped []byte, op reduce.Op) {
	all, rest := e.shards[len(e.shards)-1].hi, e.Lay(mapped, op)
	cut := func(n int) (b []byte) {
		b, rest = rest[:n:n], rest[n:]
		return b
	}
	e.Totals.Last = cut(all)
	switch {
	case e.rows != nil:
		if e.rows.seen, e.rows.sent = cut(all), cut(all); e.keeps() {
			e.sum = e.rows.seen[e.own().lo:e.own().hi]
		}
	case e.keeps():
		e.sum = cut(e.own().bytes())
	}
	for i := range e.theirs {
		e.theirs[i] = cut(e.own().bytes())
	}
}

// keeps tells whether this rank keeps a part: its own.
func (e *Engine) keeps() bool { return e.O.Rank() < len(e.shards) }
func (e *Engine) own() *shard { return &e.shards[e.O.Rank()] }

func (s *shard) bytes() int { return s.hi - s.lo }

// Specs of the boxes of a part: of a push, and of the sum, behind which is what is in it.
func (e *Engine) pushSpec(q int) rdma.Spec {
	return rdma.Spec{Bytes: e.shards[q].bytes(), About: "changes of a part", Partial: e.rows != nil}
}

func (e *Engine) sumSpec(q int) rdma.Spec {
	return rdma.Spec{Bytes: e.shards[q].bytes() + e.reachesBytes(), About: "the sum of a part", Partial: e.rows != nil}
}

func (e *Engine) reachesBytes() int { return engine.ReachBytes * e.O.Size() }

// Publish makes the boxes for pushes, and those of the sums that this rank passes on.
func (e *Engine) Publish(box func(q int, name string, spec rdma.Spec, readers []int) (rdma.Outbox, error)) (err error) {
	for q := range e.shards {
		s := &e.shards[q]
		if q != e.O.Rank() {
			if s.push, err = box(q, "push"+strconv.Itoa(q), e.pushSpec(q), []int{q}); err != nil {
				return err
			}
		}
		if len(s.below) > 0 {
			if s.sum, err = box(q, "sum"+strconv.Itoa(q), e.sumSpec(q), s.below); err != nil {
				return err
			}
		}
	}
	return nil
}

// Source is a part: at its keeper the pushes of all others, at a worker the sum. A rank that died before all
// had made the vector has sent nothing.
func (e *Engine) Source(q int) (name string, spec rdma.Spec, from []int) {
	view := e.O.View()
	if q == e.O.Rank() {
		return "push" + strconv.Itoa(q), e.pushSpec(q), view.Others(q)
	}
	if above := e.shards[q].via[0]; view.Has(above) {
		from = []int{above}
	}
	return "sum" + strconv.Itoa(q), e.sumSpec(q), from
}

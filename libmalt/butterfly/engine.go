package butterfly

import (
	"slices"
	"strconv"

	"malt/graphs"
	"malt/internal/say"
	"malt/libmalt/engine"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/rdma"
)

// Engine carries a vector.
type Engine struct {
	engine.Changes
	bytes int // of the values in a message; behind them is what is in them: a reach for each rank
	core  *Core
	outs  []rdma.Outbox // by stage
	sums  [][]byte
	from  []int // by sum: whose changes it has; Unknown: of several ranks
	sum   []reach
}

var _ core.Engine = (*Engine)(nil)

// New is for a vector of this length on g, with op, a fold of changes.
func New(o core.Object, g *graphs.Graph, op reduce.Op, bytes int) (*Engine, error) {
	e := newEngine(o, g, bytes)
	return e, e.Start(reduce.TotalsBytes(o.Runs()), func(mapped []byte) { e.Lay(mapped, op) })
}

func newEngine(o core.Object, g *graphs.Graph, bytes int) *Engine {
	e := &Engine{bytes: bytes, core: NewCore(g, o.Rank())}
	e.Use(o, e, e.core, len(e.core.stages))
	return e
}

// Source is a stage: the boxes of the others of its group.
func (e *Engine) Source(stage int) (name string, spec rdma.Spec, from []int) {
	spec = rdma.Spec{Bytes: e.messageBytes(stage), About: "sums of changes"}
	return strconv.Itoa(stage + 1), spec, e.core.others(stage)
}

func (e *Engine) messageBytes(stage int) int {
	return e.bytes + engine.ReachBytes*e.core.stages[stage].Ranks
}

// Publish makes a box for each stage.
func (e *Engine) Publish(box func(stage int, name string, spec rdma.Spec, readers []int) (rdma.Outbox, error)) error {
	for i := range e.core.stages {
		name, spec, others := e.Source(i)
		out, err := box(i, name, spec, others)
		if err != nil {
			return err
		}
		e.outs = append(e.outs, out)
	}
	return nil
}

func (e *Engine) Renewed() {}

// Heard knows of a rank that has left that this look was the last.
func (e *Engine) Heard(i int, b *engine.Inbox) {
	if e.Ranks.Left(b.From()) {
		e.core.cut(i, b.From())
	}
}

// Take takes what has come in stage i.
func (e *Engine) Take(i int, b *engine.Inbox) {
	if b.Held.Tag != e.Era {
		return
	}
	if n := e.messageBytes(i); len(b.Held.Data) != n {
		e.Fail(say.Errorf(rdma.ErrCorrupt, "%s: rank %d sent %d bytes, expected %d", e.O.Called("gather"), b.From(), len(b.Held.Data), n))
		return
	}
	e.sum = engine.AppendReaches(e.sum[:0], b.Held.Data[e.bytes:])
	e.Fail(e.core.take(i, b.From(), e.sum))
	e.Edges[b.From()].Fold(int64(e.O.Clock()-b.Held.Clock), e.bytes)
}

// Send publishes stage i, if it is due.
func (e *Engine) Send(i int) {
	e.core.waited(e.Until(e.O.Rank()))
	if !e.core.due(i, e.Until) {
		return
	}
	slot, err := e.outs[i].Begin()
	if err == nil {
		reduce.FoldRuns(reduce.Sum, e.Totals.Runs, 0, slot[:e.bytes], e.held(i), nil, 0)
		n := e.bytes
		for _, has := range e.core.of(i, e.O.Rank()) {
			has.Put(slot[n:])
			n += engine.ReachBytes
		}
		err = e.outs[i].Commit(n, rdma.Stamp{Clock: e.O.Clock(), Tag: e.Era}, nil)
	}
	if err != nil {
		e.Fail(err)
		return
	}
	e.core.published(i)
	for j := range e.In[i] {
		e.Sent(e.In[i][j].From(), e.bytes)
	}
}

// held is this rank's total, and what it holds of the stages before.
func (e *Engine) held(before int) [][]byte {
	e.sums, e.from = append(e.sums[:0], e.Totals.Sum), append(e.from[:0], e.O.Rank())
	for i := range e.In[:before] {
		for j := range e.In[i] {
			if b := &e.In[i][j]; b.Has && b.Held.Tag == e.Era {
				from := b.From()
				if i > 0 {
					from = reduce.Unknown
				}
				e.sums, e.from = append(e.sums, b.Held.Data[:e.bytes]), append(e.from, from)
			}
		}
	}
	return e.sums
}

// Gone is dead, or the error where changes come no more, because a rank has left that passed them on. A rank that
// dies leaves its changes with the others of its groups.
func (e *Engine) Gone(dead error) error {
	ranks, through := e.core.Lost()
	if dead != nil || ranks == nil {
		return dead
	}
	return engine.HasLeft(say.Errorf(core.ErrLeft, "%s: rank %d has left, and passes on no more changes of %s", e.O.Called("gather"), through, say.Ranks(ranks)), "butterfly")
}

// Through appends the late ranks, and those on the way of their changes to this one.
func (e *Engine) Through(list, late []int) []int {
	for _, r := range late {
		list = e.core.Way(list, r)
	}
	slices.Sort(list)
	list = slices.Compact(list)
	return slices.DeleteFunc(list, func(r int) bool { return r == e.O.Rank() })
}

// Apply makes the array the start and all totals.
func (e *Engine) Apply() {
	e.O.Brought(e.Totals.Apply(e.O.Array(), e.held(len(e.In))), e.from)
}

// Moved is the bytes of the vector to each rank of a group.
func (e *Engine) Moved(rank int) int {
	if e.core.through(rank) == rank && rank != e.O.Rank() {
		return e.bytes
	}
	return 0
}

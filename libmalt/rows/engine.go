package rows

import (
	"context"
	"errors"
	"fmt"

	"malt/graphs"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// Engine carries a vector of rows with ids.
type Engine struct {
	o      core.Object
	op     reduce.Op
	row    spvec.Shape // the width of a row
	memory []byte      // array, wanted rows, and for each of these whether no rank holds it
	ends   [3]int      // of these
	wanted int         // where the wanted rows begin: in the array, if the program names none
	spec   rdma.Spec
	links  []*link // by rank; nil: in no group with this one
	plan   *Plan
	mapped [2][]byte
	call   call
	edges  []core.Edge // what has not been counted yet
}

// link is the queues to and from another rank.
type link struct {
	out  rdma.Outbox
	in   rdma.Inbox
	held rdma.Update // not released, if has
	has  bool
	used int // bytes of it, while it is at hand
}

var _ core.Meeting = (*Engine)(nil)

// Ids are those of a rank's rows, and of the rows that it wants; nil: the same.
type Ids struct{ Rows, Wants []uint64 }

// depth is how many messages may be under way to a rank.
const depth = 2

// New is for a vector of such rows, in stages of g.
func New(o core.Object, g *graphs.Graph, op reduce.Op, row spvec.Shape, ids Ids) (*Engine, error) {
	e := newEngine(o, g, op, row, ids)
	err := e.each(func(r int, l *link) (err error) {
		l.out, err = o.Transport().Publish(context.Background(), e.boxName(r), e.spec, []int{r})
		return err
	})
	if err == nil {
		e.memory, err = o.Transport().Map(max(1, e.ends[2]))
	}
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func newEngine(o core.Object, g *graphs.Graph, op reduce.Op, row spvec.Shape, ids Ids) *Engine {
	stages := g.Stages(o.Rank())
	e := &Engine{o: o, op: op, row: row, links: make([]*link, o.Size()), edges: make([]core.Edge, o.Size())}
	size, wants := row.RowBytes(), ids.Wants
	e.ends[0] = len(ids.Rows) * size
	if wants == nil {
		e.ends[1], e.ends[2], wants = e.ends[0], e.ends[0], ids.Rows
	} else {
		e.wanted = (e.ends[0] + core.CutBytes - 1) / core.CutBytes * core.CutBytes
		e.ends[1] = e.wanted + len(wants)*size
		e.ends[2] = e.ends[1] + len(wants)
	}
	e.plan = NewPlan(stages, o.Rank(), ids.Rows, wants)
	for _, s := range stages {
		for _, r := range s.Group {
			if r != o.Rank() {
				e.links[r] = &link{}
			}
		}
	}
	e.call.chunk = max(core.ChunkBytes/size, 1) * size
	e.spec = rdma.Spec{Bytes: e.call.chunk, Mode: rdma.Queue(depth), Partial: true, About: "rows"}
	return e
}

// each calls f with all other ranks that this one exchanges rows with.
func (e *Engine) each(f func(rank int, l *link) error) error {
	for r, l := range e.links {
		if l != nil {
			if err := f(r, l); err != nil {
				return err
			}
		}
	}
	return nil
}

func (e *Engine) boxName(reader int) string { return fmt.Sprintf("%s/%d", e.o.BoxName(), reader) }

// Memory begins with the array; Wanted is what follows.
func (e *Engine) Memory() []byte { return e.memory }

// Wanted is the wanted rows, and a byte for each of them: 1 if no rank holds it. Of the array's
// own there are no such bytes.
func (e *Engine) Wanted() (values, missing []byte) {
	if values = e.memory[e.wanted:e.ends[1]]; e.ends[1] < e.ends[2] {
		missing = e.memory[e.ends[1]:e.ends[2]]
	}
	return values, missing
}

// Join connects the queues, and makes the plan.
func (e *Engine) Join(ctx context.Context) error {
	var others []int
	_ = e.each(func(r int, _ *link) error { others = append(others, r); return nil })
	ins, err := e.o.Transport().Subscribe(ctx, e.boxName(e.o.Rank()), e.spec, others)
	if err != nil {
		return err
	}
	for _, in := range ins {
		e.links[in.From()].in = in
	}
	e.begin(e.o.Calls()+1, true)
	waited := e.o.Transport().Wait(ctx, func() bool {
		var done bool
		done, err = e.Step()
		return done || err != nil
	})
	if err = errors.Join(err, waited); err == nil {
		e.Finish()
	}
	return err
}

// Begin begins a sync.
func (e *Engine) Begin(number uint64) { e.begin(number, false) }

// Late are the ranks that the last step lacked.
func (e *Engine) Late() []int { return e.call.late() }

// Count counts what went to each rank, and came, since it was called last.
func (e *Engine) Count(edges []core.Edge) {
	for r := range e.edges {
		edges[r].Add(e.edges[r])
	}
	clear(e.edges)
}

// Close leaves the queues: what was sent can still be had.
func (e *Engine) Close() error {
	var errs []error
	_ = e.each(func(_ int, l *link) error {
		if l.out != nil {
			errs = append(errs, l.out.Close())
		}
		if l.in != nil {
			errs = append(errs, l.in.Close())
		}
		return nil
	})
	for _, m := range e.mapped {
		errs = append(errs, e.o.Transport().Unmap(m))
	}
	e.mapped = [2][]byte{}
	return errors.Join(errs...)
}

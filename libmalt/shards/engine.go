package shards

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync"

	"malt/graphs"
	"malt/libmalt/filter"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// Engine carries a vector.
type Engine struct {
	o      core.Object
	sub    rdma.Transport // of the boxes
	remove func() error   // ends the passes of the goroutine
	mapped []byte         // what the totals and the sum are cut from

	mu     sync.Mutex // of the calls of the object and the goroutine; the rest is under it
	core   *Core
	totals reduce.Totals // Last is what is to be pushed
	shards []shard       // by part
	via    []int         // ranks from which this one has the sums, at once or through others
	sum    []byte        // of the part that this rank keeps: the values and all changes
	rows   *rows         // nil: a message has all of a part
	from   int           // the rank that has brought NaN or infinity into it, as of Brought
	era    uint64        // call that began it: only what is of the same one counts
	used   bool          // all ranks have made it
	failed error         // of a pass
	ranks  core.Presence
	news   int // by the last gather, and age
	age    uint64
	late   []int
	srcs   [][]byte
	reach  []reach
	edges  []core.Edge // what has not been counted yet
}

// shard is what a rank has of a part.
type shard struct {
	lo, hi int         // its bytes
	push   rdma.Outbox // at a worker: to the keeper
	sum    rdma.Outbox // to those below; nil: there are none
	above  int         // the rank from which this one has the sum; -1: it keeps it
	below  []int
	in     []inbox // at the keeper of the pushes, at a worker of the sum
	way    []byte  // at a worker: what was pushed last, in the outbox, until it is in the view
	moved  int     // at a worker: the bytes of the last push
	rows   partRows
}

type inbox struct {
	rdma.Inbox
	held rdma.Update // the newest sum; of the pushes one that is of a later era
	has  bool
}

var _ core.Engine = (*Engine)(nil)

// lineBytes is what parts are cut at: two ranks do not write to the same cache line.
const lineBytes = 64

// New is for a vector of this length on g, with op, a fold of changes. Where its rows have a shape, only those
// that have changed are sent, and that f lets through.
func New(o core.Object, g *graphs.Graph, op reduce.Op, bytes int, row spvec.Shape, f filter.Filter) (*Engine, error) {
	e := newEngine(o, g, bytes, row, f)
	mapped, err := o.Transport().Map(e.memory())
	if err != nil {
		return nil, err
	}
	e.lay(mapped, op)
	if e.sub, e.remove, err = o.Progress().Add(e.poll); err == nil {
		err = e.boxes(func(q int, what string, spec rdma.Spec, readers []int) (rdma.Outbox, error) {
			return e.sub.Publish(context.Background(), e.boxName(q, what), spec, readers)
		})
	}
	if err != nil {
		return nil, errors.Join(err, e.Release())
	}
	return e, nil
}

func newEngine(o core.Object, g *graphs.Graph, bytes int, row spvec.Shape, f filter.Filter) *Engine {
	e := &Engine{o: o, ranks: core.NewPresence(o.Size()), edges: make([]core.Edge, o.Size())}
	cut := lineBytes
	if row.Elem > 0 {
		e.rows, cut = &rows{filter: f}, row.RowBytes()
		for cut%lineBytes != 0 {
			cut += row.RowBytes()
		}
	}
	pieces := max(1, (bytes+cut-1)/cut)
	keepers := min(g.Keepers(), pieces) // nobody keeps nothing
	passes := make([]bool, keepers)
	for q := range keepers {
		above := g.Above(q)
		s := shard{lo: pieces * q / keepers * cut, hi: min(pieces*(q+1)/keepers*cut, bytes), above: above[o.Rank()]}
		if s.moved = s.bytes(); e.rows != nil {
			s.rows.shape = spvec.Shape{Rows: s.bytes() / row.RowBytes(), Width: row.Width, Elem: row.Elem}
		}
		for r, from := range above {
			if from == o.Rank() {
				s.below = append(s.below, r)
			}
		}
		for r := s.above; r >= 0; r = above[r] {
			e.via = append(e.via, r)
		}
		passes[q] = len(s.below) > 0
		e.shards = append(e.shards, s)
	}
	slices.Sort(e.via)
	e.via = slices.Compact(e.via)
	e.core = NewCore(o.Rank(), o.Size(), passes)
	return e
}

// memory is how much lay takes.
func (e *Engine) memory() int {
	all := e.shards[len(e.shards)-1].hi
	n := reduce.TotalsBytes(e.o.Runs()) + all
	switch {
	case e.rows != nil:
		n += 2 * all
	case e.keeps():
		n += e.own().bytes()
	}
	return n
}

func (e *Engine) lay(mapped []byte, op reduce.Op) {
	e.mapped = mapped
	totals, all := reduce.TotalsBytes(e.o.Runs()), e.shards[len(e.shards)-1].hi
	e.totals = reduce.NewTotals(e.o.Runs(), op, e.o.Size(), mapped[:totals], core.BlockBytes)
	e.totals.Last, e.sum = mapped[totals:][:all], mapped[totals+all:]
	if e.rows != nil {
		e.rows.seen, e.rows.sent = e.sum[:all], e.sum[all:]
		if e.sum = nil; e.keeps() {
			e.sum = e.rows.seen[e.own().lo:e.own().hi]
		}
	}
}

// keeps tells whether this rank keeps a part: its own.
func (e *Engine) keeps() bool { return e.o.Rank() < len(e.shards) }
func (e *Engine) own() *shard { return &e.shards[e.o.Rank()] }

func (s *shard) bytes() int { return s.hi - s.lo }

// others are all ranks but this one.
func (e *Engine) others() (list []int) {
	for r := range e.o.Size() {
		if r != e.o.Rank() {
			list = append(list, r)
		}
	}
	return list
}

// reachBytes is a reach in a message: the clock, and the number of scatters.
const reachBytes = 16

// Specs of the boxes of a part: of a push, and of the sum, behind which is what is in it.
func (e *Engine) pushSpec(q int) rdma.Spec {
	return rdma.Spec{Bytes: e.shards[q].bytes(), About: "changes of a part", Partial: e.rows != nil}
}

func (e *Engine) sumSpec(q int) rdma.Spec {
	return rdma.Spec{Bytes: e.shards[q].bytes() + e.reachesBytes(), About: "the sum of a part", Partial: e.rows != nil}
}

func (e *Engine) reachesBytes() int { return reachBytes * e.o.Size() }

func (e *Engine) boxName(q int, what string) string {
	return e.o.BoxName() + "/" + what + strconv.Itoa(q)
}

// boxes makes this rank's boxes.
func (e *Engine) boxes(publish func(q int, what string, spec rdma.Spec, readers []int) (rdma.Outbox, error)) (err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for q := range e.shards {
		s := &e.shards[q]
		if q != e.o.Rank() {
			if s.push, err = publish(q, "push", e.pushSpec(q), []int{q}); err != nil {
				return err
			}
		}
		if len(s.below) > 0 {
			if s.sum, err = publish(q, "sum", e.sumSpec(q), s.below); err != nil {
				return err
			}
		}
	}
	return nil
}

// Memory: the array has a mapping of its own.
func (e *Engine) Memory() []byte { return nil }

// Join connects the boxes.
func (e *Engine) Join(ctx context.Context) error {
	for q := range e.shards {
		s := &e.shards[q]
		if s.in != nil {
			continue // by an earlier call, which has failed
		}
		what, spec, from := "sum", e.sumSpec(q), []int{s.above}
		if q == e.o.Rank() {
			what, spec, from = "push", e.pushSpec(q), e.others()
		}
		ins, err := e.sub.Subscribe(ctx, e.boxName(q, what), spec, from)
		if err != nil {
			return err
		}
		e.mu.Lock()
		for _, in := range ins {
			s.in = append(s.in, inbox{Inbox: in})
		}
		e.mu.Unlock()
	}
	return nil
}

// Close leaves the last changes with the keepers, unless this rank has failed. From then on it
// serves.
func (e *Engine) Close() error {
	dead := core.DeathIn(e.o.Transport().State(e.o.Rank()))
	e.mu.Lock()
	if !e.used || dead != nil {
		e.mu.Unlock()
		return e.Release()
	}
	e.core.lifted(closed)
	e.pass()
	e.mu.Unlock()
	e.o.Serve(e)
	return nil
}

// Needed are the ranks that this one still has to hear of, or to push to.
func (e *Engine) Needed() []int {
	gone := make([]bool, e.o.Size()) // before the pass: it takes all that they have sent
	for r := range gone {
		gone[r] = e.o.Transport().State(r) != nil
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pass()
	return e.core.needed(nil, func(r int) bool { return gone[r] })
}

// Release gives back what is left.
func (e *Engine) Release() error {
	var errs []error
	if e.remove != nil {
		// The boxes come first: they are of the transport that ends with the last poll.
		e.mu.Lock()
		for q := range e.shards {
			s := &e.shards[q]
			for i := range s.in {
				errs = append(errs, s.in[i].Close())
			}
			for _, out := range []rdma.Outbox{s.push, s.sum} {
				if out != nil {
					errs = append(errs, out.Close())
				}
			}
		}
		e.shards, e.used = nil, false
		e.mu.Unlock()
		errs = append(errs, e.remove())
	}
	return errors.Join(append(errs, e.o.Transport().Unmap(e.mapped))...)
}

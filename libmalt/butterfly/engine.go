package butterfly

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"malt/graphs"
	"malt/internal/say"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/rdma"
)

// Engine carries a vector.
type Engine struct {
	o      core.Object
	bytes  int            // of the values in a message; behind them is what is in them: reachBytes for each rank
	sub    rdma.Transport // of the boxes
	remove func() error   // ends the passes of the goroutine
	mapped []byte         // what the totals are cut from

	mu     sync.Mutex // of the calls of the object and the goroutine; the rest is under it
	core   *Core
	totals reduce.Totals
	stages []stage
	era    uint64 // call that began it: only sums of the same one are added up
	used   bool   // all ranks have made it
	failed error  // of a pass
	ranks  core.Presence
	news   int // by the last gather, and age
	age    uint64
	late   []int
	sums   [][]byte
	from   []int // by sum: whose changes it has; Unknown: of several ranks
	sum    []reach
	edges  []core.Edge // what has not been counted yet
}

// reachBytes is a reach in a message: the clock, and the number of scatters.
const reachBytes = 16

// stage is the boxes of one: this rank's, and those of the others of its group.
type stage struct {
	out   rdma.Outbox
	spec  rdma.Spec
	boxes []inbox
}

type inbox struct {
	rdma.Inbox
	held rdma.Update // the newest
	has  bool
}

var _ core.Engine = (*Engine)(nil)

// New is for a vector of this length on g, with op, a fold of changes.
func New(o core.Object, g *graphs.Graph, op reduce.Op, bytes int) (*Engine, error) {
	e := newEngine(o, g, bytes)
	mapped, err := o.Transport().Map(reduce.TotalsBytes(o.Runs()))
	if err != nil {
		return nil, err
	}
	e.lay(mapped, op)
	if e.sub, e.remove, err = o.Progress().Add(e.poll); err == nil {
		err = e.publish()
	}
	if err != nil {
		return nil, errors.Join(err, e.Release())
	}
	return e, nil
}

func newEngine(o core.Object, g *graphs.Graph, bytes int) *Engine {
	return &Engine{o: o, bytes: bytes, core: NewCore(g, o.Rank()), ranks: core.NewPresence(o.Size()), edges: make([]core.Edge, o.Size())}
}

func (e *Engine) lay(mapped []byte, op reduce.Op) {
	e.mapped, e.totals = mapped, reduce.NewTotals(e.o.Runs(), op, e.o.Size(), mapped, core.BlockBytes)
}

// spec is that of the boxes of a stage.
func (e *Engine) spec(stage int) rdma.Spec {
	return rdma.Spec{Bytes: e.bytes + reachBytes*e.core.stages[stage].Ranks, About: "sums of changes"}
}

// publish makes this rank's boxes.
func (e *Engine) publish() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	for i := range e.core.stages {
		spec := e.spec(i)
		out, err := e.sub.Publish(context.Background(), e.boxName(i), spec, e.core.others(i))
		if err != nil {
			return err
		}
		e.stages = append(e.stages, stage{out: out, spec: spec})
	}
	return nil
}

func (e *Engine) boxName(stage int) string { return e.o.BoxName() + "/" + string(rune('1'+stage)) }

// Memory: the array has a mapping of its own.
func (e *Engine) Memory() []byte { return nil }

// Join connects the boxes.
func (e *Engine) Join(ctx context.Context) error {
	for i := range e.stages {
		s := &e.stages[i]
		if s.boxes != nil {
			continue // by an earlier call, which has failed
		}
		ins, err := e.sub.Subscribe(ctx, e.boxName(i), s.spec, e.core.others(i))
		if err != nil {
			return err
		}
		e.mu.Lock()
		for _, in := range ins {
			s.boxes = append(s.boxes, inbox{Inbox: in})
		}
		e.mu.Unlock()
	}
	return nil
}

// Settled begins an era.
func (e *Engine) Settled(summed []int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.sums = e.sums[:0]
	if len(summed) > 0 {
		e.sums = append(e.sums, e.o.Array())
	}
	e.totals.Renew(e.o.Array(), e.sums)
	e.era, e.used = e.o.Calls(), true
	e.core.renew(e.o.Clock())
	for i := range e.stages {
		for j := range e.stages[i].boxes {
			if b := &e.stages[i].boxes[j]; b.has && b.held.Tag == e.era { // its sender was faster
				e.take(i, b)
			}
		}
	}
	e.pass()
}

// poll is the pass of the goroutine.
func (e *Engine) poll() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.used && e.pass() {
		e.o.Transport().Wake()
	}
	return false
}

// pass takes what has come, and passes it on. It tells whether there was something.
func (e *Engine) pass() (took bool) {
	e.ranks.Look(e.o)
	for i := range e.stages {
		s := &e.stages[i]
		for j := range s.boxes {
			b := &s.boxes[j]
			u, ok, err := b.Next()
			e.fail(err)
			if !ok || err != nil {
				continue
			}
			took = true
			b.held, b.has = u, true
			if u.Tag == e.era {
				e.take(i, b)
			}
		}
		if e.failed == nil && e.core.due(i, e.ranks.Of) {
			e.send(i)
		}
	}
	return took || e.failed != nil
}

func (e *Engine) fail(err error) { e.failed = cmp.Or(e.failed, err) }

// take takes what has come in stage i.
func (e *Engine) take(i int, b *inbox) {
	if len(b.held.Data) != e.stages[i].spec.Bytes {
		e.fail(say.Errorf(rdma.ErrCorrupt, "%s: rank %d sent %d bytes, expected %d", e.o.Called("gather"), b.From(), len(b.held.Data), e.stages[i].spec.Bytes))
		return
	}
	e.sum = e.sum[:0]
	for at := b.held.Data[e.bytes:]; len(at) > 0; at = at[reachBytes:] {
		e.sum = append(e.sum, reach{binary.LittleEndian.Uint64(at), binary.LittleEndian.Uint64(at[8:])})
	}
	e.fail(e.core.take(i, b.From(), e.sum))
	e.edges[b.From()].Fold(int64(e.o.Clock()-b.held.Clock), e.bytes)
}

// send publishes stage i.
func (e *Engine) send(i int) {
	s := &e.stages[i]
	slot, err := s.out.Begin()
	if err == nil {
		reduce.FoldRuns(reduce.Sum, e.totals.Runs, 0, slot[:e.bytes], e.held(i), nil, 0)
		for j, has := range e.core.of(i, e.o.Rank()) {
			at := slot[e.bytes+reachBytes*j:]
			binary.LittleEndian.PutUint64(at, has.clock)
			binary.LittleEndian.PutUint64(at[8:], has.scatters)
		}
		err = s.out.Commit(s.spec.Bytes, rdma.Stamp{Clock: e.o.Clock(), Tag: e.era}, nil)
	}
	if err != nil {
		e.fail(err)
		return
	}
	e.core.published(i)
	for j := range s.boxes {
		edge := &e.edges[s.boxes[j].From()]
		edge.SentMessages++
		edge.SentBytes += uint64(e.bytes)
	}
}

// held is this rank's total, and what it holds of the stages before.
func (e *Engine) held(before int) [][]byte {
	e.sums, e.from = append(e.sums[:0], e.totals.Sum), append(e.from[:0], e.o.Rank())
	for i := range e.stages[:before] {
		for j := range e.stages[i].boxes {
			if b := &e.stages[i].boxes[j]; b.has && b.held.Tag == e.era {
				from := b.From()
				if i > 0 {
					from = reduce.Unknown
				}
				e.sums, e.from = append(e.sums, b.held.Data[:e.bytes]), append(e.from, from)
			}
		}
	}
	return e.sums
}

// Scatter adds the last changes to the total.
func (e *Engine) Scatter(clock uint64, weight float64) core.Stepper {
	return core.Locked{Lock: &e.mu, Of: e.o, Method: "scatter", By: e, Do: func() (bool, error) {
		e.totals.Add(e.o.Array(), weight, nil)
		e.core.scattered(clock)
		e.pass()
		return true, e.failed
	}}
}

// Gather waits until no rank that is present is more than slack clocks behind.
func (e *Engine) Gather(clock, slack uint64) core.Stepper {
	return core.Locked{Lock: &e.mu, Of: e.o, Method: "gather", By: e, Do: func() (bool, error) {
		e.pass()
		if err := cmp.Or(e.failed, e.ahead()); err != nil {
			return false, err
		}
		e.late = e.core.late(e.late[:0], clock-min(slack, clock), e.ranks.OrDead)
		if len(e.late) > 0 {
			return false, e.ranks.Death(e.late)
		}
		start := time.Now()
		e.o.Brought(e.totals.Apply(e.o.Array(), e.held(len(e.stages))), e.from)
		e.news, e.age = e.core.gather(), e.core.age(clock, e.ranks.Of)
		e.o.Folded(time.Since(start))
		return true, nil
	}}
}

// ahead is the error where another rank is in an era of which this one knows nothing.
func (e *Engine) ahead() error {
	for i := range e.stages {
		for j := range e.stages[i].boxes {
			if b := &e.stages[i].boxes[j]; b.has && b.held.Tag > e.era {
				return core.CountsNoMore(e.o, b.From())
			}
		}
	}
	return nil
}

// Level says that the clock of this rank has risen without changes.
func (e *Engine) Level(clock uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.core.lifted(clock)
	e.pass()
}

// Share adds the last changes to the total, too.
func (e *Engine) Share() ([]byte, uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.totals.Add(e.o.Array(), 1, nil)
	return e.totals.Sum, e.era
}

func (e *Engine) Late() []int                                 { return e.late }
func (e *Engine) Gathered() (ranks int, age uint64)           { return e.news, e.age }
func (e *Engine) AllReduce(core.Call, reduce.Op) core.Stepper { return nil }
func (e *Engine) Writers(late []int) []int                    { return late }

// Moved is the bytes of the vector to each rank of a group.
func (e *Engine) Moved(rank int) int {
	if e.core.through(rank) == rank && rank != e.o.Rank() {
		return e.bytes
	}
	return 0
}

// Count counts what went to each rank, and came, since it was called last.
func (e *Engine) Count(edges []core.Edge) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for r := range e.edges {
		edges[r].Add(e.edges[r])
	}
	clear(e.edges)
}

// Close leaves the total with the others, unless this rank has failed. From then on it serves.
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

// Needed are the ranks for which this one still passes something on.
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
		for i := range e.stages {
			for j := range e.stages[i].boxes {
				errs = append(errs, e.stages[i].boxes[j].Close())
			}
			errs = append(errs, e.stages[i].out.Close())
		}
		e.stages, e.used = nil, false
		e.mu.Unlock()
		errs = append(errs, e.remove())
	}
	return errors.Join(append(errs, e.o.Transport().Unmap(e.mapped))...)
}

package engine

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/rdma"
)

// Changes is what engines of vectors with a fold of changes have in common, which embed it: the
// totals of this rank, the boxes of the others, and a pass, which takes what has come and sends
// what is due. The calls of the object make passes, and between them the goroutine of package
// progress does.
type Changes struct {
	O      core.Object
	way    Way
	clocks Clocks
	sub    rdma.Transport // of the boxes
	remove func() error   // ends the passes of the goroutine
	mapped []byte         // what the totals are cut from

	Mu     sync.Mutex // of the calls of the object and the goroutine; the rest is under it
	Totals reduce.Totals
	In     [][]Inbox // the boxes of others, by source
	outs   []rdma.Outbox
	Era    uint64 // call that began it: only what is of the same one counts
	used   bool   // all ranks have made it
	Failed error  // of a pass
	Ranks  Presence
	// Until and orDead of Ranks.
	Until, orDead func(rank int) uint64

	Edges []core.Edge // what has not been counted yet
	news  int         // by the last gather, and age
	age   uint64
	late  []int
	sums  [][]byte
}

// Inbox is the box of another rank.
type Inbox struct {
	rdma.Inbox
	Held rdma.Update // the newest, if Has
	Has  bool
}

// Way is how such an engine sends changes. All but Source is called under the lock.
type Way interface {
	// Publish makes the boxes of this rank, each for readers to which it is a box of that source.
	Publish(box func(source int, name string, spec rdma.Spec, readers []int) (rdma.Outbox, error)) error
	// Source is the boxes of others that it looks into together: their name, and whose they are.
	Source(i int) (name string, spec rdma.Spec, from []int)

	// Take takes what Held of a box is now. Heard comes after each look into a box, and Send
	// for each source after those into all boxes: it sends what is due.
	Take(i int, b *Inbox)
	Heard(i int, b *Inbox)
	Send(i int)
	// Renewed says that an era has begun, with the values that all have.
	Renewed()
	// Gone is the error of a gather where a rank is gone that it needs. dead is the death of a rank that is
	// late, if one is dead.
	Gone(dead error) error
	// Apply makes the array what all changes that are here make it.
	Apply()
}

// Clocks decides for it: what is known of the changes that have come.
type Clocks interface {
	// Scattered says that this rank has changed what it will up to clock, by one scatter more;
	// Lifted, that it is at clock without another change.
	Scattered(clock uint64)
	Lifted(clock uint64)
	// Late appends to list the ranks of which changes up to clock may be missing, that they had made until
	// then; Age is how far the one that is farthest behind it is.
	Late(list []int, clock uint64, until func(rank int) uint64) []int
	Age(clock uint64, until func(rank int) uint64) uint64
	// Gathered says that what has come is in the array, and from how many other ranks there are
	// changes that were not there at the last one.
	Gathered() (ranks int)
	// Needed appends to list the ranks for which this one, which has closed the vector, goes on. gone are
	// ranks from which nothing more comes.
	Needed(list []int, gone func(rank int) bool) []int
	// Renew says that all ranks have the changes of all, which are at clock.
	Renew(clock uint64)
}

// Use has way use e, with so many sources, and clocks.
func (e *Changes) Use(o core.Object, way Way, clocks Clocks, sources int) {
	e.O, e.way, e.clocks, e.In = o, way, clocks, make([][]Inbox, sources)
	e.Ranks, e.Edges = newPresence(o.Size()), make([]core.Edge, o.Size())
	e.Until, e.orDead = e.Ranks.Until, e.Ranks.orDead
}

// Lay cuts the totals from mapped, and returns the rest.
func (e *Changes) Lay(mapped []byte, op reduce.Op) []byte {
	n := reduce.TotalsBytes(e.O.Runs())
	e.Totals = reduce.NewTotals(e.O.Runs(), op, e.O.Size(), mapped[:n], core.BlockBytes)
	return mapped[n:]
}

// Start maps so many bytes, which lay cuts, and makes the boxes.
func (e *Changes) Start(bytes int, lay func(mapped []byte)) (err error) {
	if e.mapped, err = e.O.Transport().Map(bytes); err != nil {
		return err
	}
	lay(e.mapped)
	if e.sub, e.remove, err = e.O.Progress().Add(e.poll); err == nil {
		e.Mu.Lock()
		err = e.way.Publish(func(_ int, name string, spec rdma.Spec, readers []int) (rdma.Outbox, error) {
			out, err := e.sub.Publish(context.Background(), e.O.BoxName()+"/"+name, spec, readers)
			if err == nil {
				e.outs = append(e.outs, out)
			}
			return out, err
		})
		e.Mu.Unlock()
	}
	if err != nil {
		return errors.Join(err, e.Release())
	}
	return nil
}

// Memory: the array has a mapping of its own.
func (e *Changes) Memory() []byte { return nil }

// Join connects the boxes.
func (e *Changes) Join(ctx context.Context) error {
	for i := range e.In {
		if e.In[i] != nil {
			continue // by an earlier call, which has failed
		}
		name, spec, from := e.way.Source(i)
		ins, err := e.sub.Subscribe(ctx, e.O.BoxName()+"/"+name, spec, from)
		if err != nil {
			return err
		}
		e.Mu.Lock()
		for _, in := range ins {
			e.In[i] = append(e.In[i], Inbox{Inbox: in})
		}
		e.Mu.Unlock()
	}
	return nil
}

// each is all boxes of others, with the number of their source.
func (e *Changes) each(f func(i int, b *Inbox)) {
	for i := range e.In {
		for j := range e.In[i] {
			f(i, &e.In[i][j])
		}
	}
}

// Settled begins an era.
func (e *Changes) Settled(summed []int) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	e.sums = e.sums[:0]
	switch {
	case len(summed) == 1: // then the array is as it was
		e.sums = append(e.sums, e.Totals.Sum)
	case len(summed) > 1:
		e.sums = append(e.sums, e.O.Array())
	}
	e.Totals.Renew(e.O.Array(), e.sums)
	e.Era, e.used = e.O.Calls(), true
	e.clocks.Renew(e.O.Clock())
	e.way.Renewed()
	e.each(func(i int, b *Inbox) {
		if b.Has && b.Held.Tag == e.Era { // its sender was faster
			e.way.Take(i, b)
		}
	})
	e.Pass()
}

// poll is the pass of the goroutine.
func (e *Changes) poll() bool {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if e.used && e.Pass() {
		e.O.Transport().Wake()
	}
	return false
}

// Pass takes what has come, and sends what is due. It tells whether there was something.
func (e *Changes) Pass() (took bool) {
	e.Ranks.Look(e.O)
	for i := range e.In {
		for j := range e.In[i] {
			b := &e.In[i][j]
			u, ok, err := b.Next()
			e.Fail(err)
			if ok && err == nil {
				took, b.Held, b.Has = true, u, true
				e.way.Take(i, b)
			}
			e.way.Heard(i, b)
		}
	}
	for i := range e.In {
		if e.Failed == nil {
			e.way.Send(i)
		}
	}
	return took || e.Failed != nil
}

// Fail keeps the first error of a pass.
func (e *Changes) Fail(err error) { e.Failed = cmp.Or(e.Failed, err) }

// Sent counts a message to a rank with so many bytes of values.
func (e *Changes) Sent(rank, bytes int) {
	e.Edges[rank].SentMessages++
	e.Edges[rank].SentBytes += uint64(bytes)
}

// step is a scatter or a gather, which takes its steps under the lock.
type step struct {
	e      *Changes
	method string
	do     func() (done bool, err error)
}

func (s step) Step() (bool, error) {
	s.e.Mu.Lock()
	defer s.e.Mu.Unlock()
	return s.do()
}

func (s step) Name() string       { return s.e.O.Called(s.method) }
func (s step) Late() []int        { return s.e.late }
func (s step) Waiting() core.Wait { return core.Wait{} }
func (s step) GiveUp()            {}

// Scatter adds the last changes to the total.
func (e *Changes) Scatter(clock uint64, weight float64) core.Stepper {
	return step{e, "scatter", func() (bool, error) {
		e.Totals.Add(e.O.Array(), weight, nil)
		e.clocks.Scattered(clock)
		e.Pass()
		return true, e.Failed
	}}
}

// Gather waits until no rank is more than slack clocks behind, but for those that have changed no more.
func (e *Changes) Gather(clock, slack uint64) core.Stepper {
	return step{e, "gather", func() (bool, error) {
		e.Pass()
		e.late = e.clocks.Late(e.late[:0], clock-min(slack, clock), e.orDead)
		err := cmp.Or(e.Failed, e.ahead(), e.way.Gone(e.Ranks.death(e.late)))
		if err != nil || len(e.late) > 0 {
			return false, err
		}
		start := time.Now()
		e.way.Apply()
		e.news, e.age = e.clocks.Gathered(), e.clocks.Age(clock, e.Until)
		e.O.Folded(time.Since(start))
		return true, nil
	}}
}

// ahead is the error where another rank is in an era of which this one knows nothing.
func (e *Changes) ahead() (err error) {
	e.each(func(_ int, b *Inbox) {
		if b.Has && b.Held.Tag > e.Era && err == nil {
			err = core.CountsNoMore(e.O.Called("gather"), b.From())
		}
	})
	return err
}

// Level says that the clock of this rank has risen without changes.
func (e *Changes) Level(clock uint64) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	e.clocks.Lifted(clock)
	e.Pass()
}

// Share adds the last changes to the total, too.
func (e *Changes) Share(weight float64) ([]byte, uint64) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	e.Totals.Add(e.O.Array(), weight, nil)
	return e.Totals.Sum, e.Era
}

func (e *Changes) Late() []int                                 { return e.late }
func (e *Changes) Inherit([]int) error                         { return nil }
func (e *Changes) Through(list, late []int) []int              { return append(list, late...) }
func (e *Changes) Gathered() (ranks int, age uint64)           { return e.news, e.age }
func (e *Changes) AllReduce(core.Call, reduce.Op) core.Stepper { return nil }
func (e *Changes) Writers(late []int) []int                    { return late }

// Count counts what went to each rank, and came, since it was called last.
func (e *Changes) Count(edges []core.Edge) {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	for r := range e.Edges {
		edges[r].Add(e.Edges[r])
	}
	clear(e.Edges)
}

// Close leaves the last changes with the others, unless this rank has failed. From then on it
// serves.
func (e *Changes) Close() error {
	dead := core.DeathIn(e.O.Transport().State(e.O.Rank()))
	e.Mu.Lock()
	if !e.used || dead != nil {
		e.Mu.Unlock()
		return e.Release()
	}
	e.clocks.Lifted(Closed)
	e.Pass()
	e.Mu.Unlock()
	e.O.Serve(e)
	return nil
}

// Needed are the ranks for which this one goes on.
func (e *Changes) Needed() []int {
	gone := make([]bool, e.O.Size()) // before the pass: it takes all that they have sent
	for r := range gone {
		gone[r] = e.O.Transport().State(r) != nil
	}
	e.Mu.Lock()
	defer e.Mu.Unlock()
	e.Pass()
	return e.clocks.Needed(nil, func(r int) bool { return gone[r] })
}

// Release gives back what is left.
func (e *Changes) Release() error {
	var errs []error
	if e.remove != nil {
		// The boxes come first: they are of the transport that ends with the last poll.
		e.Mu.Lock()
		e.each(func(_ int, b *Inbox) { errs = append(errs, b.Close()) })
		for _, out := range e.outs {
			errs = append(errs, out.Close())
		}
		e.In, e.outs, e.used = nil, nil, false
		e.Mu.Unlock()
		errs = append(errs, e.remove())
	}
	return errors.Join(append(errs, e.O.Transport().Unmap(e.mapped))...)
}

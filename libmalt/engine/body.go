package engine

import (
	"context"

	"malt/internal/say"
	"malt/libmalt/boxes"
	"malt/libmalt/codec"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
)

// another is why an option of vectors in boxes does not go with one that an engine carries.
const another = "a vector with ids, or with changes on butterfly or shards, travels another way"

// carried is what both bodies are.
type carried struct {
	*core.Member
	carrier core.Carrier
	used    bool
}

func (b *carried) Memory() []byte { return b.carrier.Memory() }

// Publish has nothing to do: what others read the carrier has published when it was made.
func (b *carried) Publish(boxes.Mode, string) error {
	if b.used {
		return say.Errorf(core.ErrUnsupported, "%s cannot be configured", b).At(another).Try("Make a new vector.")
	}
	return nil
}

func (b *carried) Join(ctx context.Context) error { return b.carrier.Join(ctx) }

func (b *carried) Abandon() {
	if !b.used {
		_ = b.carrier.Close() // there is an error to tell already
	}
}

func (b *carried) Row() int     { return 0 }
func (b *carried) CountLost()   { b.carrier.Count(b.Counts.Edges) }
func (b *carried) Leave() error { return b.carrier.Close() }

// Begin is for folds of the user's, which an engine has not.
func (b *carried) Begin(context.Context) ([]codec.Update, error) {
	return nil, say.Errorf(core.ErrUnsupported, "%s: this vector has no updates to fold one by one", b.Called("gather")).At(another).Try("Call gather() without fold=.")
}

func (b *carried) Whole(int) ([]byte, error) { return nil, b.End(false) }

func (b *carried) End(bool) error {
	return say.Errorf(core.ErrState, "no gather of %s is open", b).Try("Begin one first.")
}

// Await is of boxes alone.
func (b *carried) Await(context.Context) error {
	return say.Errorf(core.ErrUnsupported, "%s: wait= does not go with this vector", b.Called("gather")).At(another).Try("Leave it out.")
}

// withRows is the error for rows= of a call.
func (b *carried) withRows(method string) error {
	return say.Errorf(core.ErrUnsupported, "%s: rows= does not go with this vector", b.Called(method)).At(another).Try("Leave it out.")
}

// Body is the body of an object that an engine carries.
type Body struct {
	carried
	Engine core.Engine

	fold  reduce.Op
	slack uint64
	calls struct{ scatter, gather, sync call }
}

// New is for an object with that fold, whose gathers have that slack.
func New(m *core.Member, e core.Engine, fold reduce.Op, slack uint64) *Body {
	return &Body{carried: carried{Member: m, carrier: e}, Engine: e, fold: fold, slack: slack}
}

func (b *Body) Use(core.View) {
	b.used = true
	b.Engine.Settled(nil)
}

// Settled comes after the level of its call: all ranks are at the same clock then.
func (b *Body) Settled(summed []int) {
	b.CatchUp()
	b.Engine.Settled(summed)
}

func (b *Body) Share(weight float64) ([]byte, uint64) { return b.Engine.Share(weight) }
func (b *Body) Inherit(among []int) error             { return b.Engine.Inherit(among) }
func (b *Body) Writers(late []int) []int              { return b.Engine.Writers(late) }

func (b *Body) Age() uint64 {
	_, age := b.Engine.Gathered()
	return age
}

// CatchUp carries out what a collective call has asked for.
func (b *Body) CatchUp() {
	if l := b.Levelled(); l != nil && b.used {
		b.SetClock(max(b.Clock(), l.Clock))
		b.Engine.Level(b.Clock())
	}
}

func (b *Body) AllReduce(c core.Call, op reduce.Op) core.Stepper { return b.Engine.AllReduce(c, op) }

// Send has the engine scatter.
func (b *Body) Send(ctx context.Context, _ int, rows []int64, to []int, weight float64) (int, error) {
	if rows != nil || to != nil {
		return 0, say.Errorf(core.ErrUnsupported, "%s: rows= and to= do not go with this vector", b.Called("scatter")).At(another).Try("Leave them out.")
	}
	if err := boxes.CheckWeight(weight); err != nil {
		return 0, err
	}
	err := b.run(ctx, &b.calls.scatter, "scatter", core.InScatter, func(c *call) { c.scatter(weight) })
	if err != nil {
		return 0, err
	}
	return b.moved(), nil
}

// moved is what a scatter moves.
func (b *Body) moved() (sent int) {
	for _, r := range b.Job.View().Ranks {
		if r != b.Job.Rank {
			sent += b.Engine.Moved(r)
		}
	}
	return sent
}

// Gather has the engine gather.
func (b *Body) Gather(ctx context.Context, fold reduce.Op) (int, error) {
	if fold != b.fold {
		return 0, say.Errorf(core.ErrUnsupported, "%s: fold=%s does not go with this vector", b.Called("gather"), fold).At(another+", with fold=%s", b.fold).Try("Leave fold= out.")
	}
	return b.gathered(b.run(ctx, &b.calls.gather, "gather", core.InGather, func(c *call) { c.gather(b.slack) }))
}

// gathered is what a gather returns.
func (b *Body) gathered(err error) (int, error) {
	if err != nil {
		return 0, err
	}
	ranks, _ := b.Engine.Gathered()
	return ranks, nil
}

// Sync is both.
func (b *Body) Sync(ctx context.Context, rows []int64, weight float64, slack int, _ reduce.Op) (int, error) {
	if rows != nil {
		return 0, b.withRows("sync")
	}
	if err := boxes.CheckWeight(weight); err != nil {
		return 0, err
	}
	most := b.slack
	if slack >= 0 {
		most = uint64(slack)
	}
	return b.gathered(b.run(ctx, &b.calls.sync, "sync", core.InGather, func(c *call) {
		c.scatter(weight)
		c.then = func(c *call) { c.gather(most) }
	}))
}

// run carries out a call that begin makes.
func (b *Body) run(ctx context.Context, c *call, method string, in core.Activity, begin func(c *call)) error {
	return b.Run(ctx, false, c, func() error {
		c.b, c.method, c.in, c.then = b, method, in, nil
		begin(c)
		return nil
	})
}

// call is a scatter, a gather or both, which an engine carries out.
type call struct {
	b       *Body
	method  string
	in      core.Activity
	stepper core.Stepper
	book    func(c *call) // of the stepper, when it is done
	then    func(c *call) // what follows it; nil: nothing
	least   uint64        // clock that all have to come to
	late    []int
}

func (c *call) scatter(weight float64) {
	clock := c.b.Clock() + 1
	c.stepper = c.b.Engine.Scatter(clock, weight)
	c.book = func(c *call) {
		b := c.b
		b.SetClock(max(b.Clock(), clock))
		b.Changed()
		b.Counts.Scatters++
		t := b.Job.Marks.Trace
		t.Scattered(t.Begin(), b.Member, clock, b.Job.View().Ranks, b.moved())
	}
}

func (c *call) gather(slack uint64) {
	clock := c.b.Clock()
	c.stepper, c.least = c.b.Engine.Gather(clock, slack), clock-min(slack, clock)
	c.book = func(c *call) { c.b.Counts.Gathers++ }
}

func (c *call) Step() (bool, error) {
	for {
		done, err := c.stepper.Step()
		c.b.Job.Adopt() // after the step: who left a rank out had gone over to the view without it before
		switch {
		case err != nil:
			c.end()
			return false, err
		case !done:
			c.b.Job.Marks.Note(c.in, c.b.ID, c.b.Clock())
			return false, nil
		}
		c.book(c)
		if c.then == nil {
			c.end()
			return true, nil
		}
		next := c.then
		c.then = nil
		next(c)
	}
}

func (c *call) Name() string { return c.b.Called(c.method) }

// Late are the ranks whose changes are missing, of those that have not come. Where all have, or are in
// a collective call, they are those that are to pass on what these sent.
func (c *call) Late() []int {
	missing := c.b.Engine.Late()
	c.late = c.late[:0]
	for _, r := range missing {
		_, id, clock, err := c.b.Job.Marks.Doing(r)
		if away, _ := c.b.Job.IsAway(r); !away && (err != nil || id != c.b.ID || clock < c.least) {
			c.late = append(c.late, r)
		}
	}
	if len(c.late) == 0 {
		c.late = c.b.Engine.Through(c.late, missing)
	}
	return c.late
}

func (c *call) Waiting() core.Wait { return c.b.Waiting(c.Name(), c.Late()) }

func (c *call) GiveUp() {
	c.end()
	c.stepper.GiveUp()
}

func (c *call) end() {
	c.b.Job.Marks.Note(core.InCompute, c.b.ID, c.b.Clock())
}

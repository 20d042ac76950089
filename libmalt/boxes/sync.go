package boxes

import (
	"malt/internal/say"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/rule"
	"malt/rdma"
)

// syncing is a sync in progress: on the vector's route, or a scatter and then a
// gather.
type syncing struct {
	b      *Boxes
	stage  int
	clock  uint64 // of the sync on the route
	weight float64
	slack  int  // of this one, in place of the rule's; negative: as the rule says
	noted  bool // the marks say that this rank waits
}

// Stages of a syncing.
const (
	onRoute = iota
	scatters
	gathers
)

func (o *syncing) start(b *Boxes, rows []int64, weight float64, slack int, fold reduce.Op) error {
	if slack >= 0 && b.ch.mode.Rule.Boxes() != rdma.Newest {
		return say.Errorf(core.ErrUnsupported, "%s: slack=%d does not go with consistency=%s", b.Called("sync"), slack, b.ch.mode.Rule).
			Try("Leave slack= out, or make the vector with consistency=ssp:2 or async.")
	}
	o.slack = slack
	o.b, o.stage, o.clock, o.weight, o.noted = b, scatters, b.Clock()+1, weight, false
	// What a scatter refuses is refused by every route, too.
	err := b.scattering.start(b, len(b.Data), rows, nil, weight)
	begun := b.Job.Marks.Trace.Begin() // before others can fold what this rank has
	if err == nil && b.ch.everyone && sameOnAll(fold) && b.Route.Begin(o.clock, fold, weight) {
		o.stage, b.begun = onRoute, begun
	}
	return err
}

func (o *syncing) Step() (bool, error) {
	b := o.b
	if o.stage == onRoute {
		at, err := b.Route.Step()
		switch {
		case err != nil:
			o.leave()
			return false, err
		case at == core.Underway:
			o.blocked()
			return false, nil
		case at == core.Arrived:
			o.book()
			b.averaged()
			b.Job.Marks.Trace.Averaged(b.Member, o.clock, b.Job.View().Ranks)
			return true, nil
		}
		if err := o.left(at); err != nil {
			return false, err
		}
	}
	if o.stage == scatters {
		if err := o.scatter(); err != nil || o.stage == scatters {
			return false, err
		}
	}
	return o.b.gathering.Step()
}

// left continues as the outcome of the route says.
func (o *syncing) left(at core.Outcome) error {
	switch at {
	case core.UseBoxes:
		o.stage = scatters
	case core.Owed:
		o.book()
	case core.InBoxes:
		o.b.scattered(o.clock, o.weight)
		o.b.scattering.count()
		o.b.owedAt = 0
		return o.gather()
	}
	return nil
}

// book counts the sync as a scatter, of which the gather is due.
func (o *syncing) book() { o.b.sentTo(o.clock, o.weight) }

func (o *syncing) blocked() {
	b := o.b
	if !o.noted { // a step is made again and again, and over a network a word costs something
		o.noted = true
		b.Job.Marks.Note(core.InGather, b.ID, b.Clock())
	}
}

// scatter goes on to the gather, unless it has to wait.
func (o *syncing) scatter() error {
	done, err := o.b.scattering.Step()
	if !done || err != nil {
		return err
	}
	return o.gather()
}

func (o *syncing) gather() error {
	o.stage = gathers
	err := o.b.gathering.start(o.b)
	o.b.gathering.method = "sync"
	if o.slack >= 0 {
		o.b.gathering.rule = rule.Rule{Kind: rule.SSP, N: uint64(o.slack)}
	}
	return err
}

func (o *syncing) current() core.Stepper {
	if o.stage == gathers {
		return &o.b.gathering
	}
	return &o.b.scattering
}

func (o *syncing) Name() string { return o.b.Called("sync") }

func (o *syncing) Late() []int {
	if o.stage != onRoute {
		return o.current().Late()
	}
	return o.b.Route.Late()
}

func (o *syncing) CameLast() int {
	if o.stage != onRoute {
		return -1 // each arrival wakes
	}
	return o.b.Route.CameLast()
}

func (o *syncing) Waiting() core.Wait {
	if o.stage != onRoute {
		w := o.current().Waiting()
		w.Call = o.Name()
		return w
	}
	return o.b.Waiting(o.Name(), o.b.Route.Late())
}

// leave has the route finish what other ranks wait for, and goes on with what that
// leaves to do. If that fails, the sync has an error already.
func (o *syncing) leave() (at core.Outcome) {
	at, err := o.b.Route.Leave()
	if err == nil && o.left(at) == nil && o.stage == scatters {
		_ = o.scatter()
	}
	return at
}

func (o *syncing) GiveUp() {
	if o.stage == onRoute {
		if o.leave() == core.Underway { // and this rank has done its part
			o.book()
		}
		if o.stage == onRoute {
			return
		}
	}
	o.current().GiveUp()
}

// sameOnAll tells whether op has the same result on all ranks if all send to all.
func sameOnAll(op reduce.Op) bool {
	switch op {
	case reduce.Mean, reduce.Sum, reduce.Min, reduce.Max:
		return true
	}
	return false
}

// sentTo books a sync on the route as a scatter, of which the gather is due.
func (b *Boxes) sentTo(clock uint64, weight float64) {
	b.scattered(clock, weight)
	b.owedAt = clock
	sent := 0
	for _, r := range b.Job.View().Ranks {
		if r != b.Job.Rank {
			b.Counts.Edges[r].SentMessages++
			moved := b.Route.Moved(r)
			b.Counts.Edges[r].SentBytes += uint64(moved)
			sent += moved
		}
	}
	b.Job.Marks.Trace.Scattered(b.begun, b.Member, clock, b.Job.View().Ranks, sent)
}

// scattered books that this rank has sent what it has at that clock.
func (b *Boxes) scattered(clock uint64, weight float64) {
	b.SetClock(max(b.Clock(), clock))
	b.Changed()
	b.weight, b.void = weight, false
	b.unfolds++
	b.Counts.Scatters++
	b.Job.Marks.Note(core.InCompute, b.ID, b.Clock())
}

// averaged books it as a gather.
func (b *Boxes) averaged() {
	b.owedAt = 0
	b.unfolds--
	b.Counts.Gathers++
	for _, r := range b.Job.View().Ranks {
		if r != b.Job.Rank {
			b.Counts.Edges[r].Fold(0, b.Route.Moved(r))
		}
	}
}

package processes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strings"
	"time"

	"malt/libmalt"
	"malt/libmalt/consistency"
	"malt/rdma"
)

// patience bounds every wait of a rank: longer is a hang. The wait's own
// sentence says for whom.
const patience = 30 * time.Second

// arrival is how long ranks wait for one that may die before it joins.
const arrival = 1500 * time.Millisecond

// verdict is what a rank reports when it is done with its plan.
type verdict struct {
	Outcome string        // see below
	Text    string        // the error
	Call    string        // that gave it
	Began   time.Duration // when that call began and ended, of now
	Ended   time.Duration
	Tally   tally
}

// Outcomes.
const (
	fine    = "fine"
	peer    = "peer is dead" // and the error names it
	absent  = "peer has not arrived"
	missed  = "peer has left" // a collective call lacked it
	failure = "failure"
)

// callError is an error of MALT's, with the call that gave it.
type callError struct {
	call         string
	began, ended time.Duration
	err          error
}

func (e *callError) Error() string { return e.call + ": " + e.err.Error() }
func (e *callError) Unwrap() error { return e.err }

// runner is a rank that follows a plan.
type runner struct {
	*rank
	plan     *plan
	w        *libmalt.World
	obj      *held
	obs      *observer
	phase    int // from 0
	levelled bool
	closed   bool // the object
	rnd      *rand.Rand
	tally    tally
}

func (x *runner) me() int { return x.Config.Rank }

// reached is where a rank's clock is when the collective calls that end the
// phase begin.
func (x *runner) reached(rank int) uint64 {
	if x.levelled {
		return x.plan.base(x.phase + 1)
	}
	return x.obs.base + uint64(x.obs.scatters(rank))
}

func (ph *planPhase) options() string {
	return "graph=" + ph.graph.String() + " consistency=" + ph.mode.String()
}

// runSchedule is the program of a rank. It ends in good order unless the plan or
// the test ends it otherwise.
func runSchedule(r *rank) error {
	var seed uint64
	if err := r.args(&seed); err != nil {
		return err
	}
	x := &runner{rank: r, plan: newPlan(seed), rnd: rand.New(rand.NewPCG(seed, 100+uint64(r.Config.Rank))), tally: tally{}}
	runtime.GOMAXPROCS(x.plan.threads[r.Config.Rank])
	r.set(stage, started)
	if err := warmUp(); err != nil {
		return err
	}
	before, err := takeInventory()
	if err != nil {
		return err
	}
	r.set(stage, joining)
	err = x.join()
	if err == nil {
		r.set(stage, joined)
		err = x.follow()
	}
	r.set(stage, finished)
	v := x.judge(err)
	if v.Outcome == peer {
		x.goOn(&v)
	}
	v.Tally = x.tally
	if err := r.report(v); err != nil {
		return err
	}
	if v.Outcome == peer || v.Outcome == absent {
		// All others are to see the death for themselves, not that we left.
		if _, err := r.order(); err != nil {
			return err
		}
	}
	r.set(activity, int(leaving))
	if err := x.leave(v.Outcome); err != nil {
		return fmt.Errorf("leaving: %w", err)
	}
	if err := backTo(before); err != nil {
		return fmt.Errorf("after leaving: %w", err)
	}
	return nil
}

// judge says what an error means.
func (x *runner) judge(err error) verdict {
	v := verdict{Outcome: fine}
	if err == nil {
		return v
	}
	v.Outcome, v.Text = failure, err.Error()
	var call *callError
	if !errors.As(err, &call) {
		return v
	}
	v.Call, v.Began, v.Ended = call.call, call.began, call.ended
	var dead *rdma.PeerError
	d := x.plan.death
	switch {
	case d != nil && errors.As(err, &dead) && dead.Rank == d.rank:
		v.Outcome = peer
	case d.early() && call.call == "join":
		v.Outcome = absent
	case x.plan.end == desert && x.phase == len(x.plan.phases)-1 && errors.Is(err, libmalt.ErrLeft):
		v.Outcome = missed
	}
	return v
}

// join makes this process a rank.
func (x *runner) join() error {
	limit := patience
	if x.plan.death.early() {
		limit = arrival
	}
	ctx, stop := context.WithTimeout(context.Background(), limit)
	defer stop()
	began := now()
	w, err := libmalt.Join(ctx, x.Config)
	if err != nil {
		return &callError{"join", began, now(), err}
	}
	x.w = w
	return nil
}

// call carries out one call that may wait. Impatient ranks let it time out and
// make it again, which must not change what it does.
func (x *runner) call(what activityKind, name string, f func(context.Context) error) error {
	x.set(activity, int(what))
	defer x.set(activity, int(computing))
	began := now()
	for {
		limit := patience - (now() - began)
		short := x.plan.impatient && x.rnd.IntN(3) > 0
		if short {
			limit = min(limit, upTo(x.rnd, 3*time.Millisecond))
		}
		ctx, stop := context.WithTimeout(context.Background(), limit)
		err := f(ctx)
		stop()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, libmalt.ErrTimeout) && now()-began < patience:
			x.tally.add("timeouts", 1)
			if (what == gathering || what == scattering) && name != "sync" && x.rnd.IntN(4) == 0 {
				if err := x.obj.s.Cancel(); err != nil { // then it begins anew
					return err
				}
			}
		default:
			return &callError{name, began, now(), err}
		}
	}
}

func (x *runner) together(name string, f func(context.Context) error) error {
	x.tally.add("collectives", 1)
	n := x.page.at(x.me(), collectives).Add(1)
	return x.call(collecting, fmt.Sprintf("%s (collective call %d)", name, n), f)
}

// follow carries out the plan.
func (x *runner) follow() error {
	if err := x.together("making of the object", func(ctx context.Context) (err error) {
		x.obj, err = x.plan.object.hold(ctx, x.w, x.plan.phases[0].options()+" ")
		return err
	}); err != nil {
		return err
	}
	for i := range x.plan.phases {
		x.phase, x.levelled = i, false
		x.set(phase, i+1)
		x.obs = x.plan.observe(x.me(), i, x.obs)
		if c := x.obj.s.Clock(); c != x.obs.base {
			return fmt.Errorf("phase %d begins at clock %d, expected %d", i+1, c, x.obs.base)
		}
		for _, o := range x.obs.ops[x.me()] {
			if err := x.do(o); err != nil {
				return fmt.Errorf("phase %d, %s: %w", i+1, x.obs.mode, err)
			}
		}
		for _, c := range x.obs.then {
			next := &x.plan.phases[min(i+1, len(x.plan.phases)-1)]
			if err := c.run(x, next, x.together); err != nil {
				return fmt.Errorf("end of phase %d: %w", i+1, err)
			}
			x.levelled = true
		}
	}
	return x.finish()
}

// do is one step of the plan.
func (x *runner) do(o op) error {
	for until := now() + o.pause; now() < until; {
		runtime.Gosched() // the user's computing
	}
	if d := x.plan.death; d != nil && d.rank == x.me() && d.how != "kill" && x.page.at(x.me(), scatters).Load() >= int64(d.after.value) {
		x.die(d.how)
	}
	switch o.kind {
	case scatter:
		if err := x.call(scattering, "scatter", func(ctx context.Context) error { return x.obj.send(ctx, o.to) }); err != nil {
			return err
		}
		x.page.at(x.me(), scatters).Add(1)
		x.tally.add("scatters "+x.obs.mode.String(), 1)
		return nil
	case look, lookTwice:
		return x.look(o.kind == lookTwice)
	}
	return x.fold(o.kind)
}

// look gathers and reads what comes; twice: gives it back first and gathers
// again.
func (x *runner) look(twice bool) error {
	for {
		var us []libmalt.Update
		if err := x.call(gathering, "gather", func(ctx context.Context) (err error) {
			us, err = x.obj.s.Begin(ctx)
			return err
		}); err != nil {
			return err
		}
		if twice {
			twice = false
			if err := x.obj.s.End(false); err != nil {
				return err
			}
			continue
		}
		x.gathered(len(us))
		own := x.obj.s.Clock()
		if err := x.obs.check(own, us, x.obj.read); err != nil {
			return errors.Join(err, x.obj.s.End(true))
		}
		if x.rnd.IntN(8) == 0 { // G3: until End they stay as they are
			runtime.Gosched()
			for _, u := range us {
				if err := checkPayload(u, x.obj.read); err != nil {
					return errors.Join(fmt.Errorf("read again: %w", err), x.obj.s.End(true))
				}
			}
		}
		for _, u := range us {
			if err := x.checkHeader(u); err != nil {
				return errors.Join(err, x.obj.s.End(true))
			}
		}
		return x.obj.s.End(true)
	}
}

// checkHeader compares what travels beside the payload.
func (x *runner) checkHeader(u libmalt.Update) error {
	if x.obj.segment() {
		if want := x.obj.length(u.Rank, u.Clock); len(u.Data) != want {
			return fmt.Errorf("update of rank %d clock %d has %d bytes, expected %d", u.Rank, u.Clock, len(u.Data), want)
		}
	} else if want := weight(u.Rank, u.Clock); u.Weight != want && u.Weight != 1 { // sync sends 1
		return fmt.Errorf("update of rank %d clock %d has weight %v, expected %v", u.Rank, u.Clock, u.Weight, want)
	}
	return nil
}

func (x *runner) gathered(n int) {
	x.page.at(x.me(), gathers).Add(1)
	x.tally.add("gathers "+x.obs.mode.String(), 1)
	x.tally.add("folded "+x.obs.mode.String(), n)
}

// fold gathers with one of the library's folds. A segment has none.
func (x *runner) fold(kind opKind) error {
	if x.obj.segment() {
		if kind == syncAll {
			if err := x.do(op{kind: scatter}); err != nil {
				return err
			}
		}
		return x.look(false)
	}
	var n int
	if kind == syncAll {
		x.obj.fill(value(x.me(), x.obj.s.Clock()+1))
		if err := x.call(gathering, "sync", func(ctx context.Context) (err error) {
			n, err = x.obj.v.Sync(ctx, 1)
			return err
		}); err != nil {
			return err
		}
		x.page.at(x.me(), scatters).Add(1)
		x.tally.add("scatters "+x.obs.mode.String(), 1)
	} else {
		own := x.obj.s.Clock()
		x.obj.fill(value(x.me(), own)) // an earlier fold may have changed it
		name := map[opKind]string{foldSum: "sum", foldMax: "max", foldReplace: "replace", foldMean: "mean"}[kind]
		if err := x.call(gathering, "gather", func(ctx context.Context) (err error) {
			n, err = x.obj.v.Gather(ctx, name)
			return err
		}); err != nil {
			return err
		}
	}
	x.gathered(n)
	got, ok, err := x.obj.read(x.obj.s.Bytes())
	if err != nil {
		return fmt.Errorf("G3: after a fold: %w", err)
	}
	if !ok {
		got = value(x.me(), x.obj.s.Clock())
		kind = foldMean
	}
	return x.obs.checkFold(kind, x.obj.s.Clock(), n, got)
}

// checkVector fails unless the vector holds x everywhere.
func (x *runner) checkVector(want float64) error {
	got, ok, err := x.obj.read(x.obj.s.Bytes())
	if err != nil || ok && got != want {
		return fmt.Errorf("the vector holds %s (%v), expected %s", decoded(got), err, decoded(want))
	}
	return nil
}

// die ends this process without leaving.
func (x *runner) die(how string) {
	x.page.at(x.me(), died).Store(int64(now()))
	if how == "abort" {
		x.w.Abort("the plan says so")
	}
	os.Exit(3)
}

// goOn: after a death, calls that do not wait succeed.
func (x *runner) goOn(v *verdict) {
	if x.obs == nil || x.closed || x.obs.mode.Depth() > 0 || x.obs.mode.MaxScatters() > 0 ||
		!strings.Contains(x.obj.s.Describe(), x.obs.mode.String()) { // configured for the next phase already
		return
	}
	if err := errors.Join(x.obj.s.Cancel(), x.w.Cancel()); err != nil {
		v.Outcome, v.Text = failure, err.Error()
		return
	}
	if err := x.obj.send(context.Background(), []int{}); err != nil { // to nobody: it is not in the plan
		v.Outcome, v.Text = failure, fmt.Sprintf("scatter in %s after the death (%s): %v", x.obs.mode, v.Text, err)
		return
	}
	x.tally.add("scatters after a death", 1)
	if x.obs.mode.Kind == consistency.Async {
		if _, err := x.obj.s.Begin(context.Background()); err != nil {
			v.Outcome, v.Text = failure, fmt.Sprintf("gather in async after the death (%s): %v", v.Text, err)
			return
		}
		_ = x.obj.s.End(true)
	}
}

// finish is the end of the last phase.
func (x *runner) finish() error {
	switch {
	case x.plan.end == desert && x.me() != x.plan.chosen:
		err := x.together("barrier that one rank does not come to", x.w.Barrier)
		if err == nil {
			err = fmt.Errorf("a barrier succeeded without rank %d, which has left", x.plan.chosen)
		}
		return err
	case x.plan.end == stay && x.me() == x.plan.chosen:
		if err := x.report(verdict{Outcome: fine}); err != nil {
			return err
		}
		x.set(activity, int(idle))
		if _, err := x.order(); err != nil { // the others have gone
			return err
		}
		x.set(activity, int(computing))
		return x.takeRest()
	case x.plan.end == shut:
		if err := x.checkStats(); err != nil {
			return err
		}
		x.closed = true
		if err := x.obj.s.Close(); err != nil {
			return err
		}
		return x.together("barrier after closing the object", x.w.Barrier)
	case x.plan.end == apart || x.plan.end == stay:
		x.tally.add("early leaves", 1)
	}
	return x.checkStats()
}

// takeRest: what was sent before its sender left is not lost.
func (x *runner) takeRest() error {
	o := x.obs
	switch o.mode.Kind {
	case consistency.BSP:
		return nil
	case consistency.NotifyAck: // every gather takes one of each
		most := uint64(0)
		for r := range o.ops {
			most = max(most, uint64(o.scatters(r)))
		}
		for o.turn < most {
			if err := x.look(false); err != nil {
				return err
			}
		}
		return nil
	}
	if err := x.look(false); err != nil {
		return err
	}
	own := x.obj.s.Clock()
	for r := range o.ops {
		if last := o.lastFor(r); r != o.me && o.mode.Takes(own, last) && o.last[r] < last && !x.blind() {
			return fmt.Errorf("%s: all others have left; the last update of rank %d for this one was clock %d, the last folded is %d", o.mode, r, last, o.last[r])
		}
	}
	return nil
}

// blind: some folds do not tell which updates they took.
func (x *runner) blind() bool {
	for _, o := range x.obs.ops[x.me()] {
		if o.kind != scatter && o.kind != look && o.kind != lookTwice && !x.obj.segment() {
			return true
		}
	}
	return x.obj.size() == 0
}

// lastFor is the clock of a sender's last update for this rank.
func (o *observer) lastFor(sender int) (clock uint64) {
	for c := o.base + 1; c <= o.base+uint64(o.scatters(sender)); c++ {
		if o.meant(sender, o.base, c, o.me) {
			clock = c
		}
	}
	return clock
}

// leave closes everything in good order.
func (x *runner) leave(outcome string) error {
	if x.w == nil {
		return nil
	}
	var first *byte
	if x.obj != nil && x.obj.s != nil {
		if b := x.obj.s.Bytes(); cap(b) > 0 {
			first = &b[:1][0]
		}
	}
	err := x.w.Close()
	if err == nil && first != nil {
		err = x.w.Unmap(first)
	}
	return err
}

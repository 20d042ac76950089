package processes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"malt/libmalt"
	"malt/rdma"
)

// runner is a rank that follows a plan.
type runner struct {
	*rank
	plan     *plan
	w        *libmalt.World
	obj      *held
	obs      *observer
	noise    *noise  // nil: none
	memory   []*byte // of objects that were not closed, because the job failed
	phase    int     // from 0
	givenUp  int     // calls that were given up
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
	var l lot
	if err := r.args(&l); err != nil {
		return err
	}
	x := &runner{rank: r, plan: newPlan(l), rnd: rand.New(rand.NewPCG(l.Seed, 100+uint64(r.Config.Rank))), tally: tally{}}
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
	r.Config.Continue, r.Config.MinRanks = l.Survive, x.plan.least
	err = x.join()
	if err == nil {
		r.set(stage, joined)
		if l.Survive {
			err = newSurvivor(x).follow()
		} else {
			err = x.follow()
		}
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

// join makes this process a rank.
func (x *runner) join() error {
	limit := patience
	if x.plan.earlyDeaths() {
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

// call carries out one call that may wait. Impatient ranks let its time run out, and have
// it go on, which must not change what it does, or give it up and make it anew.
func (x *runner) call(what activityKind, name string, f func(context.Context) error) error {
	x.set(activity, int(what))
	defer x.set(activity, int(computing))
	began := now()
	ctx := &impatience{x: x, what: what, until: began + patience}
	for {
		ctx.begin()
		err := f(ctx)
		ctx.stop()
		switch {
		case err == nil:
			return nil
		case errors.Is(err, libmalt.ErrTimeout) && now() < ctx.until:
			x.givenUp++
		default:
			return &callError{name, began, now(), err}
		}
	}
}

// impatience is the context of a call of a rank that may be impatient.
type impatience struct {
	context.Context
	stop  context.CancelFunc
	x     *runner
	what  activityKind
	until time.Duration
}

func (i *impatience) begin() {
	limit := i.until - now()
	if i.x.plan.impatient && i.x.rnd.IntN(3) > 0 {
		limit = min(limit, upTo(i.x.rnd, 3*time.Millisecond))
	}
	i.Context, i.stop = context.WithTimeout(context.Background(), limit)
}

// GoOn implements libmalt.Patient.
func (i *impatience) GoOn(error) bool {
	if now() >= i.until {
		return false
	}
	i.x.tally.add("timeouts", 1)
	if (i.what == gathering || i.what == scattering) && i.x.rnd.IntN(4) == 0 {
		return false
	}
	i.stop()
	i.begin()
	return true
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
	if x.plan.noise {
		if err := x.makeNoise(); err != nil {
			return err
		}
	}
	for i := range x.plan.phases {
		x.phase, x.levelled = i, false
		x.set(phase, i+1)
		x.obs = x.plan.observe(x.me(), i, x.obs)
		if x.plan.fatal() {
			x.obs.without = func(r int) bool { return x.page.at(r, phase).Load() <= int64(i) }
		}
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

// die ends this process without leaving.
func (x *runner) die(how string) {
	x.page.at(x.me(), died).Store(int64(now()))
	if how == "abort" {
		x.w.Abort(rdma.HasFailed(x.w.Rank(), "the plan says so"))
	}
	os.Exit(3)
}

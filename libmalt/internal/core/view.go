package core

import (
	"context"
	"errors"

	"malt/internal/say"
	"malt/rdma"
)

// View is a set of ranks, and its number.
type View = rdma.View

// View is who takes part, as far as this rank has noticed: it changes in calls alone.
func (j *Job) View() rdma.View { return *j.view.Load() }

// Adopt is View, after a look for a newer one.
func (j *Job) Adopt() rdma.View {
	if j.views != nil {
		j.enter(j.views.View())
	}
	return j.View()
}

// enter makes v this rank's view, unless that is as new.
func (j *Job) enter(v rdma.View) {
	for {
		old := j.view.Load()
		if old != nil && v.Generation <= old.Generation {
			return
		}
		if j.view.CompareAndSwap(old, &v) {
			if old != nil {
				j.tell(*old, v)
			}
			return
		}
	}
}

// tell is called once for each view that this rank has gone over to.
func (j *Job) tell(old, v rdma.View) {
	for _, r := range old.Ranks {
		if dead := DeathIn(j.T.State(r)); !v.Has(r) && dead != nil {
			j.Marks.Trace.died(v, r)
			if j.OnDeath != nil {
				j.OnDeath(v, dead)
			}
		}
	}
}

// Survive has the job go on when ranks die, as long as least are left. On several hosts it waits
// for the other ranks: all have to settle then.
func (j *Job) Survive(ctx context.Context, least int) error {
	views, ok := j.T.(rdma.Viewed)
	if !ok {
		return say.Errorf(ErrUnsupported, "on_death=continue needs shared memory on each machine, which transport %s does without", j.T.Name()).
			Try("Take transport=auto, or leave it out: a death ends the job.")
	}
	views.Survive(least)
	j.views, j.Failures.views = views, views
	if j.settlingOut != nil {
		return j.joinSettling(ctx)
	}
	return nil
}

// Expel kills the process of rank.
func (j *Job) Expel(rank int) error {
	views, ok := j.T.(rdma.Viewed)
	if !ok {
		return say.Errorf(ErrUnsupported, "malt.expel is for the ranks of one machine").Try("Kill the process on its own machine.")
	}
	return views.Expel(rank)
}

// out is the error of op where the others have gone on without this rank, or nobody ever will. Where another
// rank has given up or ended, it is enough that votes are missing: that rank may have found the same.
func out(t rdma.Transport, op Stepper, ended bool) error {
	views, ok := t.(rdma.Viewed)
	if !ok {
		return nil
	}
	err := views.Out()
	if err == nil {
		if stuck, final := views.Stuck(); final || ended && errors.Is(stuck, rdma.ErrExpelled) {
			err = stuck
		}
	}
	if err == nil {
		return nil
	}
	said := say.Of(err)
	return said.In(op.Name())
}

// Confirm returns when this rank is known to take part still.
func (j *Job) Confirm(ctx context.Context) error {
	if j.views == nil {
		return nil
	}
	asks, stop := context.WithCancel(context.Background()) // ctx may go on after its end: see Patient
	defer stop()
	err := j.Run(ctx, "malt.confirm", func() (Stepper, error) {
		return &confirming{j: j, answer: j.views.Confirm(asks)}, nil
	})
	if err == nil {
		j.Adopt()
	}
	return err
}

// confirming is the wait for the answer of the other hosts.
type confirming struct {
	j      *Job
	answer rdma.Answer
	late   []int
}

func (c *confirming) Step() (known bool, err error) {
	known, c.late = c.answer()
	return known, nil
}

func (c *confirming) Name() string { return "malt.confirm" }
func (c *confirming) Late() []int  { return c.late }
func (c *confirming) GiveUp()      {}

func (c *confirming) Waiting() Wait {
	const do = "Write no results: the other ranks may have gone on without this one."
	if len(c.late) == 0 {
		return Wait{Call: c.Name(), Whom: "the hosts, which decide who takes part", Do: do}
	}
	w := c.j.waitFor(c.Name(), c.late, do, "")
	w.Whom += " to confirm that this rank takes part"
	return w
}

// Survives tells whether it does.
func (j *Job) Survives() bool { return j.views != nil }

// LeftOut tells whether the job goes on without rank, which is dead.
func LeftOut(t rdma.Transport, rank int) bool {
	v, ok := t.(rdma.Viewed)
	return ok && !v.View().Has(rank)
}

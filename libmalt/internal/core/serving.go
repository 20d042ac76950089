package core

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// A rank that has closed an object may still be needed to pass on what others send: its engine
// goes on, and the rank does not leave the job before nobody needs it.

// serve keeps s, and ends those that are no longer needed.
func (j *Job) serve(s Server) {
	j.mu.Lock()
	over := slices.DeleteFunc(slices.Clone(j.servers), func(s Server) bool { return len(s.Needed()) > 0 })
	j.servers = slices.DeleteFunc(append(j.servers, s), func(s Server) bool { return slices.Contains(over, s) })
	j.mu.Unlock()
	for _, s := range over {
		_ = s.Release() // it is the object's no longer
	}
}

// served ends what has served, if wait after nobody needs this rank. Where the time of ctx is
// up before, or a rank has died, the rank leaves as well.
func (j *Job) served(ctx context.Context, wait bool) (err error) {
	j.mu.Lock()
	servers := j.servers
	j.servers = nil
	j.mu.Unlock()
	if wait && len(servers) > 0 {
		if j.Progress.Runs() {
			defer j.lookOften()()
		}
		_ = j.Gate.waiter.await(ctx, j.Marks, &leaving{j: j, servers: servers})
	}
	for _, s := range servers {
		err = cmp.Or(err, s.Release())
	}
	return err
}

// lookOften wakes this rank every few milliseconds until stop: that another one has taken what it sent last rings nobody.
func (j *Job) lookOften() (stop func()) {
	var beside sync.WaitGroup
	over := make(chan struct{})
	beside.Go(func() {
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			select {
			case <-tick.C:
				j.T.Wake()
			case <-over:
				tick.Stop()
				return
			}
		}
	})
	return func() {
		close(over)
		beside.Wait()
	}
}

// leaving is the wait of a rank that leaves for the ranks that need it.
type leaving struct {
	j       *Job
	servers []Server
	late    []int
}

func (l *leaving) Step() (bool, error) {
	l.late = l.late[:0]
	for _, s := range l.servers {
		l.late = append(l.late, s.Needed()...)
	}
	slices.Sort(l.late)
	l.late = slices.Compact(l.late)
	return len(l.late) == 0, nil
}

func (l *leaving) Name() string { return "malt.finalize" }
func (l *leaving) Late() []int  { return l.late }
func (l *leaving) GiveUp()      {}

func (l *leaving) Waiting() Wait {
	w := l.j.waitFor(l.Name(), l.late, "This rank is done, and passes on their changes until they are done, too. Do they hang?", "sync-timeout")
	w.Whom += " to close the vectors whose changes this rank passes on"
	return w
}

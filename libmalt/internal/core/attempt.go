package core

import (
	"errors"

	"malt/internal/say"
	"malt/rdma"
)

// A collective call is made among the ranks of a view. Where one of them dies, and has not
// sent all of its data, the call begins again without it, as another attempt, in the view
// that there is then. Each message has the number of its
// attempt, in Stamp.Age.
//
// An attempt comes about if all of its ranks have sent all of their data in it. On one host nobody
// stores to what a dead rank has left, so all ranks that look at it after its death find the same:
// all of its data, and it has taken part, or not, and then nobody completes the attempt. A
// rank that meets a message of a later attempt follows: its sender needs the data of
// this rank there, and does not send its own here, unless the attempt cannot come about.
// So no two ranks complete different attempts of a call.
//
// All ranks must know the same of each other's objects: before they go on without a rank,
// they have read all that it had sent.
//
// On several hosts ranks may find different messages of a dead rank. There they settle first on
// whether the attempt has come about (settle.go), and none goes on before.

// errAttempt says that the attempt under way cannot come about, or another is.
var errAttempt = errors.New("another attempt")

// attempt is its number: 0 while nobody has died.
func (c *Collective) attempt() uint64 { return c.view.Generation - 1 }

// attempts takes a step of the call, in as many attempts as it takes.
func (c *Collective) attempts(step func() (bool, error)) (bool, error) {
	s := c.Job.settling
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		// Before it settles: another rank may be in a gather that waits for this one, and
		// settle in its next call.
		if err := c.arrive(); err != nil {
			return false, err
		}
	}
	for {
		done, on, err := c.settled()
		if on {
			done, err = step()
		}
		if err != errAttempt {
			if done && s != nil {
				s.ending = true
			}
			return done, err
		}
		if s != nil {
			continue // in the view that there is now
		}
		if err := c.retry(); err != nil {
			return false, err
		}
	}
}

// Refresh begins this part of the call again if the view has changed since it began: this
// rank may have other data of the ranks that are gone than others have. Where survivors
// settle, the next step does so.
func (c *Collective) Refresh() error {
	if c.Job.views == nil || c.Job.Settles() || c.Job.views.View().Generation == c.view.Generation {
		return nil
	}
	return c.retry()
}

// retry begins this part of the call again, in the present view.
func (c *Collective) retry() error {
	was := c.view
	c.again(c.Job.views.View())
	if c.view.Generation == was.Generation {
		return say.Errorf(rdma.ErrCorrupt, "%s: a message of a generation behind %d", c.Name(), was.Generation)
	}
	return c.exhaust()
}

// again begins this part of the call again in v.
func (c *Collective) again(v rdma.View) {
	c.view = v
	clear(c.from)
	c.sent, c.ready = -1, false
}

// exhaust reads what the ranks that this attempt does without had sent: on one host all find
// the same.
func (c *Collective) exhaust() (err error) {
	if c.Job.Settles() || len(c.view.Ranks) == c.Job.Size {
		return nil
	}
	for r := range c.Job.in {
		s := &c.Job.in[r]
		for s.inbox != nil && !c.view.Has(r) {
			if !s.has {
				if s.next, s.has, err = s.inbox.Next(); err != nil {
					return err
				}
			}
			if !s.has {
				break
			}
			if err := c.drop(r); err != nil {
				return err
			}
		}
	}
	return nil
}

// View is that of this attempt, Ranks are its ranks.
func (c *Collective) View() rdma.View { return c.view }
func (c *Collective) Ranks() []int    { return c.view.Ranks }

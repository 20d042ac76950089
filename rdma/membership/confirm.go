package membership

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/vote"
)

// inquiry asks the hosts of the view whether they know a later one: for calls of Confirm, or
// because this rank has a reason to think so. A host that knows one tells it.
type inquiry struct {
	q        *vote.Question // nil: not begun in this view
	number   uint64         // of the last
	answered vote.Set       // hosts that have answered, whatever they say
	sent     time.Time
	since    time.Time // the hosts are asked again and again since then; zero: they are not
	calls    []call    // of Confirm, from before it began
}

// call is one of Confirm.
type call struct {
	ctx    context.Context
	answer chan error // has room for it
}

func (i *inquiry) heed(m vote.Message, from int) {
	if i.q != nil && m.Number == i.q.Number && i.q.View.Generation == m.Generation {
		i.q.Heed(m, from)
		i.answered = i.answered.With(from)
	}
}

// ask begins an inquiry where one is needed, and repeats the question.
func (m *Members) ask(now time.Time) {
	i, each := &m.inquiry, tick
	i.calls = slices.DeleteFunc(i.calls, func(c call) bool { return c.ctx.Err() != nil })
	if len(i.calls) == 0 {
		if i.calls = m.calls.take(); len(i.calls) > 0 {
			i.q, i.sent = nil, time.Time{} // asked after the call
		}
	}
	m.uneasy = m.uneasy || m.stirred
	if len(i.calls) == 0 {
		if each = askEach; m.stirred {
			i.q = nil // what hosts have told up to now does not count
		} else if i.q != nil && i.q.View.Hosts.Less(m.see.Dead).Within(i.answered) {
			m.uneasy = false
		}
		if !m.uneasy {
			i.since = time.Time{}
			return
		}
	}
	if i.since.IsZero() {
		i.since = now
	}
	if now.Sub(i.sent) < each {
		return
	}
	if i.q == nil {
		i.number++
		i.q, i.answered = m.voter.Confirm(i.number), vote.NewSet(m.c.Job.Hosts)
	}
	i.sent = now
	m.tell(i.q.View.Hosts.Less(m.see.Dead), i.q.Ask())
	if answer, ok := m.voter.Answer(i.q.Ask(), m.see, m.host); ok {
		i.heed(answer, m.host)
	}
}

// calls are those of Confirm.
type calls struct {
	mu         sync.Mutex
	waiting    []call // not taken yet
	unanswered []int  // hosts, in the inquiry under way
}

func (c *calls) take() []call {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.waiting
	c.waiting = nil
	return taken
}

// settle lets the calls return that have their answer.
func (c *calls) settle(m *Members) {
	i := &m.inquiry
	if err := m.Out(); err != nil {
		for _, call := range append(c.take(), i.calls...) {
			call.answer <- err
		}
		i.calls = nil
		return
	}
	if len(i.calls) == 0 || i.q == nil {
		return
	}
	c.mu.Lock()
	c.unanswered = slices.Collect(i.q.View.Hosts.Less(i.answered).All())
	c.mu.Unlock()
	if i.q.Confirmed(m.see) {
		for _, call := range i.calls {
			call.answer <- nil
		}
		i.calls = nil
	}
}

// Confirm returns once it is known that nobody had gone on without this rank when it was
// called. It fails with rdma.ErrExpelled where somebody had, and when ctx is done with the
// hosts that have not answered.
func (m *Members) Confirm(ctx context.Context) error {
	c := call{ctx, make(chan error, 1)}
	m.calls.mu.Lock()
	m.calls.waiting = append(m.calls.waiting, c)
	m.calls.mu.Unlock()
	m.Wake()
	select {
	case err := <-c.answer:
		return err
	case <-m.life.Done():
		return rdma.ErrClosed
	case <-ctx.Done():
	}
	if err := m.Out(); err != nil {
		return err
	}
	m.calls.mu.Lock()
	hosts := m.calls.unanswered
	m.calls.mu.Unlock()
	where := "the hosts are deciding who takes part"
	if len(hosts) > 0 {
		where = fmt.Sprintf("no answer from %s", m.names(hosts))
	}
	return say.Errorf(ctx.Err(), "it could not be confirmed that this rank takes part").At("%s", where).
		Try("Write no results: the other ranks may have gone on without this one.")
}

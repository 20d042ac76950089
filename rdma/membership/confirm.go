package membership

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"malt/rdma"
	"malt/rdma/vote"
)

// inquiry asks the hosts of the view whether they know a later one. A host that knows one tells it.
type inquiry struct {
	q        *vote.Question // nil: not begun in this view
	answered vote.Set       // hosts that have answered, whatever they say
	sent     time.Time
	since    time.Time // the hosts are asked again and again since then; zero: they are not
}

// call is one of Confirm.
type call struct {
	ctx    context.Context
	answer atomic.Pointer[answer] // nil: nobody is asked yet
}

// answer is what an rdma.Answer tells.
type answer struct {
	known bool
	late  []int
}

func (i *inquiry) heed(m vote.Message, from int) {
	if i.q != nil && m.Number == i.q.Number && i.q.View.Generation == m.Generation {
		i.q.Heed(m, from)
		i.answered = i.answered.With(from)
	}
}

// pose asks a question, or again after a time, and begins it if need be.
func (m *Members) pose(i *inquiry, now time.Time, each time.Duration) {
	if now.Sub(i.sent) < each {
		return
	}
	if i.q == nil {
		m.questions++
		i.q, i.answered = m.voter.Confirm(m.questions), vote.NewSet(m.c.Job.Hosts)
	}
	i.sent = now
	m.tell(i.q.View.Hosts.Less(m.see.Dead), i.q.Ask())
	if answer, ok := m.voter.Answer(i.q.Ask(), m.see, m.host); ok {
		i.heed(answer, m.host)
	}
}

// ask asks for calls of Confirm, or because this rank has a reason to think that a later view is known.
func (m *Members) ask(now time.Time) {
	i, each := &m.inquiry, tick
	m.confirming = slices.DeleteFunc(m.confirming, func(c *call) bool { return c.ctx.Err() != nil })
	if len(m.confirming) == 0 {
		if m.confirming = m.calls.take(); len(m.confirming) > 0 {
			i.q, i.sent = nil, time.Time{} // asked after the call
		}
	}
	m.uneasy = m.uneasy || m.stirred
	if len(m.confirming) == 0 {
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
	m.pose(i, now, each)
}

// calls are those of Confirm.
type calls struct {
	mu      sync.Mutex
	waiting []*call // not taken yet
}

func (c *calls) take() []*call {
	c.mu.Lock()
	defer c.mu.Unlock()
	taken := c.waiting
	c.waiting = nil
	return taken
}

// settle tells the calls whose answer is lacking, or that it is known; answered: it is.
func (c *calls) settle(m *Members) (answered bool) {
	i := &m.inquiry
	if m.Out() != nil { // nobody asks any more
		c.take()
		m.confirming = nil
	}
	if len(m.confirming) == 0 || i.q == nil {
		return false
	}
	now := answer{known: i.q.Confirmed(m.see)}
	for host := range i.q.View.Hosts.Less(i.answered).All() {
		for _, rank := range m.on[host] {
			if i.q.View.Ranks.Has(rank) && rank < m.c.Job.Ranks() { // no witness
				now.late = append(now.late, rank)
			}
		}
	}
	for _, call := range m.confirming {
		call.answer.Store(&now)
	}
	if now.known {
		m.confirming = nil
	}
	return now.known
}

// Confirm implements rdma.Viewed.
func (m *Members) Confirm(ctx context.Context) rdma.Answer {
	c := &call{ctx: ctx}
	m.calls.mu.Lock()
	m.calls.waiting = append(m.calls.waiting, c)
	m.calls.mu.Unlock()
	m.Wake()
	return func() (known bool, late []int) {
		if a := c.answer.Load(); a != nil {
			return a.known, a.late
		}
		return false, nil
	}
}

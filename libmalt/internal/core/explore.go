//go:build explore

package core

import "malt/rdma"

// What the exhaustive checks need: to make a job of boxes of their own, and to see all that
// the steps of a rank depend on.

// Op is the call that waits; nil: none does.
func (g *Gate) Op() Stepper { return g.waiter.op }

// Explored is a job without a transport, queues and marks.
func Explored(rank, size int) *Job { return newJob(rank, size) }

// Connect gives it the queue to the others, and memory for results; Hear, theirs to it.
func (j *Job) Connect(out rdma.Outbox, scratch []byte) { j.out, j.scratch = out, scratch }

// Split has data travel behind its header, in messages of their own.
func (j *Job) Split() { j.small = 0 }

func (j *Job) Hear(rank int, in rdma.Inbox) { j.in[rank].inbox = in }

func (j *Job) State() []any {
	state := []any{j.calls.Load(), j.away, j.out, j.view.Load(), j.met}
	for i := range j.in {
		in := &j.in[i]
		state = append(state, in.has, in.next.Seq, in.inbox, in.heard, in.part, in.view)
	}
	return state
}

func (m *Member) State() []any {
	return []any{m.clock.Load(), m.Head.Load(), m.told, m.untold, m.touched}
}

// State is what the steps of the call depend on. What it has kept of others' data follows
// from its number, if the sink does not say otherwise.
func (c *Collective) State() (state []any, s Sink) {
	return []any{c.begun, c.ready, c.sent, c.from, c.view}, c.sink
}

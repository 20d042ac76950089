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
func (j *Job) Connect(out rdma.Outbox, scratch []byte) {
	j.out, j.scratch = out, [2][]byte{scratch, make([]byte, len(scratch))}
}

// ConnectSettling gives it the queues for settling: its own, and by rank the others'.
func (j *Job) ConnectSettling(out rdma.Outbox, in []rdma.Inbox) {
	j.settling = j.settle(out)
	for r := range in {
		j.settling.in[r].inbox = in[r]
	}
}

// Split has data travel behind its header, in messages of their own.
func (j *Job) Split() { j.small = 0 }

func (j *Job) Hear(rank int, in rdma.Inbox) { j.in[rank].inbox = in }

func (j *Job) State() []any {
	state := []any{j.calls.Load(), j.away, j.out, j.view.Load(), j.met, j.Marks.last.Load()}
	for i := range j.in {
		in := &j.in[i]
		state = append(state, in.has, in.next.Seq, in.inbox, in.heard, in.part, in.view)
	}
	if s := j.settling; s != nil {
		state = append(state, j.spare, s.out, s.view, s.done, s.told, s.planned, s.parcels, s.call.number(), s.ending, s.last, s.given)
		for r := range s.in {
			state = append(state, s.in[r])
		}
	}
	return state
}

func (m *Member) State() []any {
	return []any{m.clock.Load(), m.Head.Load(), m.told, m.untold.Load(), m.touched, m.stands, m.counted}
}

// State is what the steps of the call depend on. What it has kept of others' data follows
// from its number, if the sink does not say otherwise.
func (c *Collective) State() (state []any, s Sink) {
	return []any{c.begun, c.ready, c.sent, c.from, c.view, c.told}, c.sink
}

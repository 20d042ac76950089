//go:build explore

package explored

import (
	"context"
	"errors"
	"fmt"

	"malt/internal/explore"
	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/ends"
	"malt/rdma/internal/mem"
)

// Job is the ranks of a case.
type Job struct {
	x        *explore.Exec
	buffered bool
	words    []byte // for each rank its bell and its state, and the view: generation<<32 | ranks
	survive  bool   // the job goes on when ranks die
	ranks    []*Transport
	hosts    []int // of each rank; nil: all are on one
}

// States of a rank.
const (
	alive = iota
	left
	dead
)

// New is called while the case is made. buffered is Options.Buffered.
func New(x *explore.Exec, size int, buffered bool) *Job {
	j := &Job{x: x, buffered: buffered, words: x.Memory(16*size + 8)}
	for rank := range size {
		j.ranks = append(j.ranks, &Transport{job: j, rank: rank})
		j.ringOwn(rank)
	}
	x.Names(func(name func([]byte, string)) {
		for rank := range size {
			name(j.words[16*rank:], fmt.Sprint("bell of ", rank))
			name(j.words[16*rank+8:], fmt.Sprint("state of ", rank))
		}
		name(j.words[16*size:], "view")
	})
	return j
}

// A bell is 1 when rung; its rank sets it to 0 before it looks at what it waits
// for. While it waits for nothing it leaves it at 1.
func (j *Job) bell(rank int) *mem.Word  { return mem.WordAt(j.words, 16*rank) }
func (j *Job) state(rank int) *mem.Word { return mem.WordAt(j.words, 16*rank+8) }
func (j *Job) view() *mem.Word          { return mem.WordAt(j.words, 16*len(j.ranks)) }

// Survive has the job go on when ranks die: the view then says who has. package rendezvous
// has cases of its own on how ranks agree on a view.
func (j *Job) Survive() {
	j.survive = true
	j.view().Store(1<<32 | (1<<len(j.ranks) - 1))
}

// set is a fence: an exchange, or where stores are fences one of those, since
// what an exchange returns makes for more states.
func (j *Job) set(rank int, v uint64) {
	if j.buffered {
		j.bell(rank).Swap(v)
	} else {
		j.bell(rank).Store(v)
	}
}

func (j *Job) ring(bell uint64) { j.set(int(bell)-1, 1) }

// ringAll is made by the rank from, or by none of them.
func (j *Job) ringAll(from int) {
	for rank := range j.ranks {
		if rank == from {
			j.ringOwn(rank)
		} else {
			j.set(rank, 1)
		}
	}
}

// ringOwn takes no turn: the others ring a bell, too, but only its rank looks at it.
// So when a rank does so itself makes no difference to anybody, before it has set it
// to 0 again.
func (j *Job) ringOwn(rank int) { j.words[16*rank] = 1 }

// Go runs body as the thread of a rank.
func (j *Job) Go(rank int, body func(*explore.Thread, *Transport)) *explore.Thread {
	tr := j.ranks[rank]
	tr.thread = j.x.Go(fmt.Sprint("rank ", rank), func(t *explore.Thread) { body(t, tr) })
	return tr.thread
}

// Kernel adds the thread that publishes each death, at any time after it. It
// comes after the ranks.
func (j *Job) Kernel() *explore.Thread {
	var threads []*explore.Thread
	for _, tr := range j.ranks {
		threads = append(threads, tr.thread)
	}
	return j.x.Go("kernel", func(t *explore.Thread) {
		var known []int
		for {
			t.At("watch", known)
			rank := t.AwaitDeath(threads, &known)
			if rank < 0 {
				return
			}
			if !j.survive {
				j.state(rank).CompareAndSwap(alive, dead)
			} else if j.state(rank).Load() == alive {
				j.view().Store((j.view().Load() + 1<<32) &^ (1 << rank))
			}
			j.ringAll(-1)
		}
	}).Immune()
}

// Box makes the box of a sender, announced and attached to.
func (j *Job) Box(sender int, spec rdma.Spec, readers []int) (rdma.Outbox, []rdma.Inbox, error) {
	l, err := box.NewLayout(spec, len(readers))
	if err != nil {
		return nil, nil, err
	}
	place := box.Place{Control: j.x.Memory(l.ControlBytes), Slot: l.Flat(j.x.Memory(l.SlotBytes()))}
	j.x.Names(func(word func([]byte, string)) {
		l.Names(place.Control, place.Slot, fmt.Sprintf("box of %d: ", sender), word)
	})
	end := func(rank int) box.End {
		return box.End{
			Place: place, Layout: l, Name: "box", Sender: sender, Member: uint32(sender), Generation: 1,
			Bell: uint64(rank) + 1, Ring: j.ring, State: j.ranks[rank].State,
		}
	}
	out, err := box.NewOutbox(end(sender), readers, nil)
	if err != nil {
		return nil, nil, err
	}
	far := j.links(sender, spec)
	inboxes := make([]rdma.Inbox, len(readers))
	for i, rank := range readers {
		in, err := box.NewInbox(end(rank), i)
		if err != nil {
			return nil, nil, err
		}
		own := &inbox{in, func(u rdma.Update) { j.ranks[rank].thread.Observe(u.Stamp, string(u.Data)) }}
		if inboxes[i] = own; far != nil && j.hosts[rank] != j.hosts[sender] {
			inboxes[i] = far.inbox(own, rank)
		}
	}
	if far != nil {
		return &farOutbox{out, far.sends}, inboxes, nil
	}
	return out, inboxes, nil
}

// inbox makes what is read from a slot part of the reader's past: it is plain
// memory.
type inbox struct {
	rdma.ViewedInbox
	observe func(rdma.Update)
}

func (i *inbox) Next() (rdma.Update, bool, error) {
	u, ok, err := i.ViewedInbox.Next()
	if ok {
		i.observe(u)
	}
	return u, ok, err
}

func (i *inbox) At(clock uint64) (rdma.Update, bool, error) {
	u, ok, err := i.ViewedInbox.At(clock)
	if ok {
		i.observe(u)
	}
	return u, ok, err
}

// Words are n words of every rank, as each rank holds them.
func (j *Job) Words(name string, n int) []rdma.Words {
	all := make([]rdma.Words, len(j.ranks))
	for rank, w := range j.hold(name, n) {
		all[rank] = w
	}
	return all
}

func (j *Job) hold(name string, n int) []*words {
	maps := make([][]byte, len(j.ranks))
	all := make([]*words, len(j.ranks))
	for rank, tr := range j.ranks {
		maps[rank] = j.x.Memory(8 * n)
		all[rank] = &words{ends.Words{
			Rank: rank, N: n, Maps: maps, State: tr.State, Wake: func() { j.ringAll(rank) },
		}}
		for i := range n {
			j.x.Names(func(word func([]byte, string)) { word(maps[rank][8*i:], fmt.Sprintf("%s[%d] of %d", name, i, rank)) })
		}
	}
	return all
}

// words are never closed: they end with the case.
type words struct{ ends.Words }

func (w *words) Close() error { return nil }

// Transport is one rank's. Boxes and words come from Job.
type Transport struct {
	rdma.Transport // nil: what is not below is not there
	job            *Job
	rank           int
	thread         *explore.Thread

	// Local is what the steps of the wait to come depend on; nil: unknown.
	Local func() []any
	// Beside is what the goroutine beside the rank does whenever the rank looks; nil: nothing.
	Beside func()
}

func (t *Transport) Name() string { return "explored" }
func (t *Transport) Rank() int    { return t.rank }
func (t *Transport) Size() int    { return len(t.job.ranks) }

// Near is all ranks, or those of the same host.
func (t *Transport) Near() (ranks []int) {
	for r := range t.job.ranks {
		if t.job.hosts == nil || t.job.hosts[r] == t.job.hosts[t.rank] {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// Patience is a context that its caller may end at any moment of a wait: the
// scheduler tries both. A rank that leaves after that leaves in good order.
type Patience struct {
	context.Context
	over bool
}

func (p *Patience) Err() error {
	if p.over {
		return context.Canceled
	}
	return nil
}

// Wait runs step until it is true, now and after each ring. From then on the bell
// says nothing: rung, as it is left, it is the same to all who ring it.
func (t *Transport) Wait(ctx context.Context, step func() bool) error {
	err := t.listen(ctx, step)
	t.job.ringOwn(t.rank)
	return err
}

func (t *Transport) listen(ctx context.Context, step func() bool) error {
	for {
		if t.Local != nil && !t.thread.Replaying() {
			t.thread.At("wait", t.Local()...)
		}
		t.job.set(t.rank, 0)
		if t.Beside != nil {
			t.Beside()
		}
		if step() {
			return nil
		}
		if t.knows(t) {
			return rdma.ErrExpelled
		}
		if p, ok := ctx.(*Patience); ok && t.thread.Choose(2) == 1 {
			p.over = true
			return ctx.Err()
		}
		t.thread.Await(func() bool { return t.job.bell(t.rank).Load() != 0 })
	}
}

func (t *Transport) Wake() { t.job.ringOwn(t.rank) }

func (t *Transport) State(peer int) error {
	switch t.job.state(peer).Load() {
	case left:
		if t.knows(t.job.ranks[peer]) {
			return killed(peer)
		}
		return rdma.ErrLeft
	case dead:
		return killed(peer)
	}
	if t.job.survive && !t.knows(t) && t.job.view().Load()>>peer&1 == 0 {
		return killed(peer)
	}
	return nil
}

// Changes implements rdma.Counted: the words that State looks at all grow, and so does their sum.
func (t *Transport) Changes() uint64 {
	if t.job.hosts != nil {
		return 0 // State says more than the words
	}
	sum := uint64(1)
	for rank := range t.job.ranks {
		if rank != t.rank {
			sum += t.job.state(rank).Load()
		}
	}
	if t.job.survive {
		sum += t.job.view().Load()
	}
	return sum
}

func killed(rank int) error {
	return &rdma.PeerError{Rank: rank, Kind: rdma.Ended, Err: errors.New("killed")}
}

// View implements rdma.Viewed. Survive of the job is what counts.
func (t *Transport) View() rdma.View {
	if !t.job.survive || t.knows(t) {
		return rdma.Everyone(len(t.job.ranks))
	}
	word := t.job.view().Load()
	v := rdma.View{Generation: word >> 32}
	for r := range t.job.ranks {
		if word>>r&1 != 0 {
			v.Ranks = append(v.Ranks, r)
		}
	}
	return v
}

func (t *Transport) Survive(int) {}

func (t *Transport) Out() error                          { return nil }
func (t *Transport) Stuck() (error, bool)                { return nil, false }
func (t *Transport) Confirm(context.Context) rdma.Answer { return rdma.Known }

func (t *Transport) Expel(int) error { return rdma.ErrNotSupported }

func (t *Transport) Unmap([]byte) error { return nil }

// Abort publishes the rank's own death. How it died is not kept.
func (t *Transport) Abort(*rdma.PeerError) {
	t.job.state(t.rank).CompareAndSwap(alive, dead)
	t.job.ringAll(t.rank)
}

// Close leaves in good order, unless the rank is dead already.
func (t *Transport) Close() error {
	t.job.state(t.rank).CompareAndSwap(alive, left)
	t.job.ringAll(t.rank)
	return nil
}

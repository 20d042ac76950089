package core

import (
	"math"
	"sync"
	"sync/atomic"
	"time"

	"malt/libmalt/progress"
	"malt/rdma"
)

// Marks are the words by which the ranks of a job tell each other where they are.
type Marks struct {
	rdma.Words // those of a job have MarkCount

	Trace     *Trace // set before the first call; Now.doing is what is in markWhere
	t         rdma.Transport
	counts    rdma.Counted // t, or nil
	last      atomic.Pointer[census]
	greetings atomic.Uint64   // in markGreeting
	reads     atomic.Uint64   // in markReads
	asked     []atomic.Int64  // by rank: when ask asked it, since started; 0: it has answered
	beside    *progress.Loop  // set before the first call; nil: none
	seen      []atomic.Uint64 // by rank: MarkAway when moved looked last
	telling   sync.Mutex      // for At
	told      uint64          // the count of the place told last
}

// NewMarks is the marks of the job of t in w.
func NewMarks(t rdma.Transport, w rdma.Words) *Marks {
	counts, _ := t.(rdma.Counted)
	return &Marks{Words: w, Trace: &Trace{Now: new(Now), epoch: time.Now()}, t: t, counts: counts, asked: askable(t), seen: make([]atomic.Uint64, t.Size())}
}

// Words of each rank that all others read. Words that every call reads lie in other cache
// lines than words that every call writes.
const (
	// MarkAway is the number of the collective that the rank waits in, or of the
	// last one; Ended when it has left in good order. Whoever has itself
	// completed fewer collectives does not wait for the rank.
	MarkAway = iota * LineWords
	// MarkGaveUp is the last collective that the rank gave up, with, in the low
	// FaultBits, the rank at fault: that is itself unless it gave up because
	// another one had, or because that rank had died: then with how, above RankBits.
	MarkGaveUp
	// markWhere tells what the rank is doing, for messages: see Note.
	markWhere
	// markPlace and what follows tell where in its program the rank is: see At.
	markPlace = markWhere + 1
	// markGreeting is how often the rank has asked others for an answer: see ask.
	markGreeting = markPlace + 1 + placeWords
	// markReads is how many updates the rank has read in a replay. A sender may wait for that.
	markReads = markGreeting + 1
	MarkCount = markReads + 1
)

const (
	Ended     = math.MaxUint64
	FaultBits = 20
	RankBits  = 16 // maxSize fits
)

// Activity is what a rank does. One word has it, with the object's number and its clock.
type Activity uint64

const (
	InCompute Activity = iota // the object is the one it used last
	InGather
	InScatter
	InCollective
)

// IDMask is of an object's number in that word.
const IDMask = 1<<20 - 1

// moved has the polls beside this rank look where another has gone into a collective call, or has
// come out of one: the engines' sums wait for ranks that are present, and a word rings only the
// doorbell at which calls wait.
func (m *Marks) moved() {
	if !m.beside.Runs() {
		return
	}
	moved := false
	for r := range m.seen {
		if at := m.Peek(r, MarkAway); at != m.seen[r].Load() && at != m.seen[r].Swap(at) {
			moved = true
		}
	}
	if moved {
		m.beside.Wake()
	}
}

// Doing is what rank has noted of itself.
func (m *Marks) Doing(rank int) (activity Activity, id uint32, clock uint64, err error) {
	v, err := m.Get(rank, markWhere)
	return Activity(v >> 60), uint32(v >> 40 & IDMask), v & (1<<40 - 1), err
}

// Read says that this rank has read an update, and wakes the others.
func (m *Marks) Read() { m.Set(markReads, m.reads.Add(1)) }

// Note tells the others, when they look, what this rank is doing.
func (m *Marks) Note(activity Activity, id uint32, clock uint64) {
	v := where(activity, id, clock)
	was := m.Trace.doing.Swap(v)
	if was == v { // a call that waits looks many times
		return
	}
	m.Put(markWhere, v)
	if activity == InCollective && was>>40&IDMask != 0 {
		m.Trace.used.Store(was)
	}
}

// where packs what a rank does with an object at a clock into a word.
func where(activity Activity, id uint32, clock uint64) uint64 {
	return uint64(activity)<<60 | uint64(id&IDMask)<<40 | clock&(1<<40-1)
}

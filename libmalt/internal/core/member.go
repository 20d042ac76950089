package core

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"malt/internal/say"
)

// Member is an object as the job and its collective calls see it, whatever it consists
// of. Its calls serve one goroutine at a time.
type Member struct {
	Job     *Job
	Body    Body
	ID      uint32 // the same on all ranks
	Kind    string // "vector" or "segment"
	Name    string
	Unnamed bool // by the program: then the name is its number

	Gate Gate // also held from Begin to End
	Open bool // between the making and Close

	Data []byte
	Base *byte // first byte of the mapping behind Data, which may be empty

	Counts Stats
	Head   atomic.Uint64 // commits to the box

	clock   atomic.Uint64         // scatters, or what a collective has levelled it up to
	told    []standing            // by rank: what it has told last of the two
	untold  atomic.Bool           // in Job.untold; changed under Job.mu
	touched bool                  // in Job.touched
	gone    atomic.Bool           // closed: no longer in Job.objects
	level   atomic.Pointer[Level] // to be carried out, put there by a collective

	troubled troubled

	// Under settling.mu, as to ranks that are left out:
	stands struct { // where this rank was when it froze in the view of that generation
		generation uint64
		of         []Stand
	}
	counted map[int]counted // by rank
}

// Body is the part of an object that says how it travels.
type Body interface {
	// CatchUp carries out what a collective call has asked for: see Levelled. The gate
	// is locked.
	CatchUp()
	// Writers appends to late the ranks that may still write into the memory.
	Writers(late []int) []int
	// Leave is called once, at the end: no rank waits for this one any longer.
	Leave() error
}

// Number makes m, which is new, an object of j. Its Body comes next.
func (m *Member) Number(j *Job, id uint32, name string) {
	m.Job, m.ID, m.Name = j, id, name
	m.Counts.Edges, m.told = make([]Edge, j.Size), make([]standing, j.Size)
	m.Gate.waiter.counts = &m.Counts
}

// String is the object's kind and name, for messages.
func (m *Member) String() string {
	if m.Unnamed {
		return m.Name
	}
	return fmt.Sprintf("%s %q", m.Kind, m.Name)
}

// Waiting is for ranks that are late in a call.
func (m *Member) Waiting(call string, late []int) Wait {
	return m.Job.waitFor(call, late, allMustSync, "sync-timeout")
}

// Called is a method of it as a program writes it.
func (m *Member) Called(method string) string { return m.Name + "." + method }

// BoxName is what this rank's boxes are published under: another one at each
// making and configuring.
func (m *Member) BoxName() string { return fmt.Sprintf("%s/%d/%d", m.Name, m.ID, m.Job.Calls()) }

// Clock is the number of scatters, or what a collective call levelled it up to.
func (m *Member) Clock() uint64 { return m.clock.Load() }

// SetClock sets it. The others are to be told: see Changed.
func (m *Member) SetClock(clock uint64) { m.clock.Store(clock) }

// Run is Gate.Run for the calls of m. With hold, a call that succeeds leaves the
// gate closed behind it.
func (m *Member) Run(ctx context.Context, hold bool, op Stepper, check func() error) error {
	defer m.Job.Freed()
	return m.Gate.Run(ctx, m.Job.Marks, m.Job.Failures, m, hold, func() (Stepper, error) {
		if !m.Open {
			return nil, m.wasClosed()
		}
		m.Body.CatchUp()
		m.lacks()
		return op, check()
	})
}

// Free opens the gate. Another goroutine may wait for that, to settle.
func (m *Member) Free() {
	m.Gate.Leave()
	m.Job.Freed()
}

// Alone keeps other calls off m while a call of the job works on it, which is about m or Within it.
func (m *Member) Alone(work func() error) error {
	if err := m.Gate.Enter(m); err != nil {
		return err
	}
	defer m.Free()
	if !m.Open {
		return m.wasClosed()
	}
	defer m.Body.CatchUp()
	return work()
}

// Changed is called after the clock or the head of m has: the others do not know. Where that
// is noted already, the news are yet to be read.
func (m *Member) Changed() {
	if m.untold.Load() {
		return
	}
	m.Job.mu.Lock()
	defer m.Job.mu.Unlock()
	if m.untold.CompareAndSwap(false, true) {
		m.Job.untold = append(m.Job.untold, m)
	}
}

// stood is the level of m by what the ranks have told last: its clock is the largest of those
// among these; nil: all. The last news of a dead rank reach some hosts only.
func (m *Member) stood(among []int) *Level {
	l := &Level{Heads: make([]uint64, len(m.told))}
	for r, at := range m.told {
		if l.Heads[r] = at.head; among == nil || slices.Contains(among, r) {
			l.Clock = max(l.Clock, at.clock)
		}
	}
	return l
}

// Levelled is what a collective call of another goroutine has asked for, once; nil: nothing.
func (m *Member) Levelled() *Level {
	if m.level.Load() == nil { // as nearly always, and a look costs less than a swap
		return nil
	}
	return m.level.Swap(nil)
}

// levelTo is called at the end of a collective call, perhaps while another
// goroutine is inside a gather of m: then that one carries it out.
func (m *Member) levelTo(l *Level) {
	if old := m.level.Swap(nil); old != nil { // of an earlier call
		l.Clock, l.Seen, l.Back = max(l.Clock, old.Clock), l.Seen || old.Seen, l.Back || old.Back
	}
	m.level.Store(l)
	if m.Gate.Borrow() {
		m.Body.CatchUp()
		m.Gate.GiveBack()
	}
}

// Close leaves the object: the others no longer wait for this rank in it. Its
// memory stays valid until Job.Unmap.
func (m *Member) Close() error {
	if err := m.Gate.Enter(m); err != nil {
		return err
	}
	defer m.Free()
	if !m.Open {
		return m.wasClosed()
	}
	m.Open = false
	if body, ok := m.Body.(Lockstep); ok && body.Settles() {
		err := body.Quit() // first: what is kept, a collective call on another goroutine may end
		m.Job.delist(m, true)
		return err
	}
	m.Job.delist(m, false)
	return m.end()
}

// end lets go of the memory of an object that is closed.
func (m *Member) end() error {
	return cmp.Or(m.Body.Leave(), m.Job.Disown(m))
}

func (m *Member) wasClosed() error {
	return say.Errorf(ErrClosed, "%s has been closed", m).At("its memory can still be used, but calls on it fail")
}

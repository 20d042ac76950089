package libmalt

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"

	"malt/internal/say"
	"malt/libmalt/consistency"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// Segment is opaque bytes that a rank scatters to the receivers of a graph, and
// the updates that come from its senders. Its calls serve one goroutine at a
// time; a second one, or a call from inside a fold, gets ErrBusy.
type Segment struct {
	w       *World
	id      uint32 // the same on all ranks
	kind    string // "vector" or "segment"
	name    string
	unnamed bool // by the program: then the name is its number

	gate gate                   // also held from Begin to End
	open bool                   // between the making and Close
	held atomic.Bool            // between Begin and End
	kept atomic.Pointer[string] // a call of the job about this object that timed out and keeps its place

	data   []byte
	base   *byte       // first byte of the mapping behind data, which may be empty
	shared rdma.Shared // what data is part of, where it can be averaged in place; else nil
	across *across     // the same for averages across hosts
	mode   mode        // written under both gate and World.mu
	ch     *channel

	clock   atomic.Uint64         // scatters, or what a collective has levelled it up to
	head    atomic.Uint64         // commits to ch.out
	told    []standing            // by rank: what it has told last of the two
	untold  bool                  // in World.untold; under World.mu
	touched bool                  // in World.touched
	gone    atomic.Bool           // no longer in World.objects
	level   atomic.Pointer[level] // to be carried out, put there by a collective
	unfolds uint64                // scatters since the last gather
	void    bool                  // those were in a queue, and a collective made them seen
	back    bool                  // this rank has given a collective up, and receivers may not know that

	averagedAt uint64 // clock of an average in place of which the gather is due; 0: none
	reducedAt  uint64 // an allreduce given up, for which others may be folding yet; 0: none

	sparse  *sparse // nil: what is scattered is data itself
	weight  float64 // of the last scatter
	updates []Update
	stats   Stats

	gathering  gathering
	scattering scattering
	syncing    syncing
}

// Update is one received payload.
type Update struct {
	Data   []byte   // read-only, the sender's own memory, valid until End; of a sparse vector the values of Rows
	Rows   []uint32 // of a sparse vector: what the update mentions, ascending; nil: all rows
	Rank   int      // who sent it
	Clock  uint64   // the sender's clock when it did
	Age    int64    // the reader's clock minus that; negative: the sender is ahead
	Weight float64

	kind  spvec.Kind
	seq   uint64
	read  uint64 // the sender's update that was folded last
	whole bool   // Vector.Whole has been made
}

// String is the object's kind and name, for messages.
func (s *Segment) String() string {
	if s.unnamed {
		return s.name
	}
	return fmt.Sprintf("%s %q", s.kind, s.name)
}

// waiting is for ranks that are late in a call.
func (s *Segment) waiting(call string, late []int) wait {
	return s.w.waitFor(call, late, allMustSync, "sync-waits")
}

// called is a method of it as a program writes it.
func (s *Segment) called(method string) string { return s.name + "." + method }

// World is the job that the object belongs to.
func (s *Segment) World() *World { return s.w }

// Bytes is the memory that Scatter sends from, writable, valid until Unmap.
func (s *Segment) Bytes() []byte { return s.data }

// Clock is the number of scatters, or what a collective call levelled it up to.
func (s *Segment) Clock() uint64 { return s.clock.Load() }

// Describe is the options in force, in the grammar of NewVector.
func (s *Segment) Describe() string {
	m := s.anyMode()
	text := "name=" + s.name + " " + m.agreed()
	if s.kind == "vector" {
		text += " fold=" + m.fold.String()
	}
	return text
}

// Lockstep tells whether each gather folds what was sent with this rank's last
// scatter.
func (s *Segment) Lockstep() bool { return s.anyMode().consistency.Kind == consistency.BSP }

// boxName is what this rank's boxes are published under: another one at each
// making and configuring.
func (s *Segment) boxName() string {
	return fmt.Sprintf("%s/%d/%d", s.name, s.id, s.w.calls.Load())
}

// anyMode is the mode for those who have not locked the gate.
func (s *Segment) anyMode() mode {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.mode
}

func (s *Segment) setMode(m mode) {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	s.mode = m
}

// Receivers are the ranks that the next scatter goes to, in the graph's order.
func (s *Segment) Receivers() []int { return s.anyMode().graph.Receivers(s.w.rank, s.Clock()+1) }

// Senders are the ranks that send to this one at the present clock, at clock 0
// at the first.
func (s *Segment) Senders() []int { return s.anyMode().graph.Senders(s.w.rank, max(s.Clock(), 1)) }

// run is gate.run for the calls of s. With hold, a call that succeeds leaves the
// gate closed behind it.
func (s *Segment) run(ctx context.Context, key string, hold bool, op stepper, check func() error) error {
	_, err := s.gate.run(ctx, s.w, s, call{key: key}, hold, func() (stepper, error) {
		if !s.open {
			return nil, s.wasClosed()
		}
		if kept := s.kept.Load(); kept != nil {
			return nil, keptPlace(key, s, *kept)
		}
		s.catchUp()
		return op, check()
	}, nil)
	return err
}

// alone keeps other calls off s while a call of the job works on it.
func (s *Segment) alone(work func() error) error {
	if !s.gate.enter() {
		return busy(s)
	}
	defer s.gate.mu.Unlock()
	switch {
	case !s.open:
		return s.wasClosed()
	case s.gate.op != nil:
		return keptPlace("this call", s, s.gate.call.key)
	}
	defer s.catchUp()
	return work()
}

// levelTo is called at the end of a collective call, perhaps while another
// goroutine is inside a gather of s: then that one carries it out.
func (s *Segment) levelTo(l *level) {
	if old := s.level.Swap(nil); old != nil { // of an earlier call
		l.clock, l.seen, l.back = max(l.clock, old.clock), l.seen || old.seen, l.back || old.back
	}
	s.level.Store(l)
	if s.gate.borrow() {
		s.catchUp()
		s.gate.giveBack()
	}
}

// goAway is called when this rank enters a collective call, in which nobody may
// wait for it.
func (s *Segment) goAway() {
	if (s.shared != nil || s.across != nil) && s.gate.borrow() { // else another thread is at it
		if o, ok := s.gate.op.(*syncing); ok {
			o.goAway()
		}
		s.gate.giveBack()
	}
}

// catchUp carries out what levelTo has asked for.
func (s *Segment) catchUp() {
	l := s.level.Swap(nil)
	if l == nil || s.ch == nil {
		return
	}
	queue := s.mode.consistency.Kind == consistency.NotifyAck
	if queue || l.seen {
		s.ch.skip(l.heads)
		s.void = queue && s.unfolds > 0 && !l.seen
		s.back = queue && l.back
		s.unfolds, s.averagedAt = 0, 0
	}
	s.raise(l.clock)
}

// raise lifts the clock to that of the collective.
func (s *Segment) raise(clock uint64) {
	s.clock.Store(max(s.clock.Load(), clock))
	s.ch.arrive(s.clock.Load())
}

// Cancel gives up the call that keeps its place after a timeout, if there is
// one; also a collective call on s. ErrBusy: another goroutine is inside a call,
// or in a fold.
func (s *Segment) Cancel() error {
	if err := s.gate.cancel(s); err != nil {
		return err
	}
	s.giveUpKept()
	return nil
}

// giveUpKept gives up the call of the job about s that keeps its place.
func (s *Segment) giveUpKept() {
	for s.kept.Load() != nil {
		// Whoever holds the gate now is about to be refused, or gives up that call.
		if g := &s.w.gate; g.mu.TryLock() {
			if g.call.of == s {
				g.giveUp()
			}
			g.mu.Unlock()
		} else {
			runtime.Gosched()
		}
	}
}

// Close leaves the object: the others no longer wait for this rank in it. Its
// memory stays valid until World.Unmap.
func (s *Segment) Close() error {
	if !s.gate.enter() {
		return busy(s)
	}
	defer s.gate.mu.Unlock()
	if !s.open {
		return s.wasClosed()
	}
	s.w.delist(s)
	s.giveUpKept()
	return s.shut()
}

// shut closes the channel and lets go of the memory. The gate is locked.
func (s *Segment) shut() error {
	s.gate.giveUp()
	s.countOverwritten(true)
	s.open = false
	s.w.disown(s)
	err := firstOf(s.ch.close(), s.unmapSparse())
	return firstOf(err, s.unshare())
}

// unshare leaves the memory of this host, and the exchange with others. The own
// memory stays.
func (s *Segment) unshare() (err error) {
	if s.shared != nil {
		err = s.shared.Close()
	}
	if s.across != nil {
		err = firstOf(err, s.across.close())
	}
	return err
}

func (s *Segment) wasClosed() error {
	return say.Errorf(ErrClosed, "%s has been closed", s).At("its memory can still be used, but it can no longer be called")
}

// maxName is how many bytes a name has at most.
const maxName = 200

// checkName accepts what can travel in options and messages without quoting.
func checkName(name string) error {
	if len(name) > maxName {
		return say.Errorf(ErrInvalid, "name %.20q… has %d bytes: at most %d are possible", name, len(name), maxName)
	}
	for _, r := range name {
		if !strings.ContainsRune("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-/", r) {
			return say.Errorf(ErrInvalid, "name %.40q: %q is not allowed", name, r).Try("Use letters, digits and ._-/ only.")
		}
	}
	return nil
}

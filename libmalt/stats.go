package libmalt

import (
	"slices"
	"time"

	"malt/libmalt/consistency"
)

// Stats is what an object has done since it was made.
type Stats struct {
	Scatters, Gathers uint64
	ScatterTime       time.Duration // copying and publishing
	WaitTime          time.Duration // in scatters and gathers, for other ranks
	FoldTime          time.Duration
	Edges             []Edge // by rank; the own entry stays zero
}

// Edge is what went to and came from one rank.
type Edge struct {
	SentMessages, SentBytes     uint64
	FoldedMessages, FoldedBytes uint64
	// Overwritten counts, in async and ssp, updates for this rank that it will
	// never fold: newer ones replaced them, they were too old, a collective call
	// made them count as seen, or the object was closed.
	Overwritten uint64
	// AgeSum and AgeMax are over the folded ones: the reader's clock minus the
	// update's. A negative age: the sender was ahead.
	AgeSum, AgeMax int64
	// Waited is the time in which the rank was among those waited for.
	Waited time.Duration
}

// fold books one folded update.
func (e *Edge) fold(age int64, bytes int) {
	if e.FoldedMessages == 0 || age > e.AgeMax {
		e.AgeMax = age
	}
	e.AgeSum += age
	e.FoldedMessages++
	e.FoldedBytes += uint64(bytes)
}

// Stats is a copy of the counts so far.
func (s *Segment) Stats() (Stats, error) {
	if !s.gate.enter() {
		return Stats{}, busy(s)
	}
	defer s.gate.mu.Unlock()
	if s.open {
		s.countOverwritten(false)
	}
	st := s.stats
	st.Edges = append([]Edge(nil), s.stats.Edges...)
	return st, nil
}

// countOverwritten brings Overwritten up to date with the boxes of the
// overwriting modes: what was published for this rank, less what it folded and
// what it may still fold, which is nothing when the boxes are to be closed. In
// lock-step and in queues nothing is overwritten.
func (s *Segment) countOverwritten(closing bool) {
	if k := s.mode.consistency.Kind; k != consistency.Async && k != consistency.SSP {
		return
	}
	for i := range s.ch.sources {
		src := &s.ch.sources[i]
		lost := src.lost + src.inbox.Published() - src.folded
		if !closing {
			if u, ok, err := src.inbox.Next(); ok && err == nil {
				src.held, src.has = u, true
			}
			if src.has {
				lost--
			}
		}
		// The sender may have published between the two looks.
		if int64(lost-src.edge.Overwritten) > 0 {
			src.edge.Overwritten = lost
		}
	}
}

// watch measures how long a call waits, and for whom: from one step to the next
// it is those that the first found late.
type watch struct {
	since time.Time // of the last step that could not go on; zero: none
	late  []int
}

// again is a watch for the next call, which reuses what this one has made.
func (w *watch) again() watch { return watch{late: w.late[:0]} }

func (w *watch) blocked(s *Segment, late []int) {
	if !w.since.IsZero() && slices.Equal(w.late, late) {
		return // for many a look
	}
	now := time.Now()
	w.book(s, now)
	w.since, w.late = now, append(w.late[:0], late...)
}

func (w *watch) end(s *Segment) {
	if !w.since.IsZero() {
		w.book(s, time.Now())
		w.since = time.Time{}
	}
}

func (w *watch) book(s *Segment, now time.Time) {
	if w.since.IsZero() {
		return
	}
	d := now.Sub(w.since)
	s.stats.WaitTime += d
	for _, r := range w.late {
		s.stats.Edges[r].Waited += d
	}
}

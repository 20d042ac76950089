package core

import (
	"slices"
	"time"
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

// Fold books one folded update.
func (e *Edge) Fold(age int64, bytes int) {
	if e.FoldedMessages == 0 || age > e.AgeMax {
		e.AgeMax = age
	}
	e.AgeSum += age
	e.FoldedMessages++
	e.FoldedBytes += uint64(bytes)
}

// Add adds what of has counted.
func (e *Edge) Add(of Edge) {
	if of.FoldedMessages > 0 && (e.FoldedMessages == 0 || of.AgeMax > e.AgeMax) {
		e.AgeMax = of.AgeMax
	}
	e.AgeSum += of.AgeSum
	e.SentMessages += of.SentMessages
	e.SentBytes += of.SentBytes
	e.FoldedMessages += of.FoldedMessages
	e.FoldedBytes += of.FoldedBytes
}

// Watch measures how long calls on an object wait, and for whom: from one step to the next
// it is those that the first found late. A call has to end it.
type Watch struct {
	since time.Time // of the last step that could not go on; zero: none
	late  []int
}

func (w *Watch) Blocked(m *Member, late []int) {
	if !w.since.IsZero() && slices.Equal(w.late, late) {
		return // for many a look
	}
	now := time.Now()
	w.book(m, now)
	w.since, w.late = now, append(w.late[:0], late...)
}

func (w *Watch) End(m *Member) {
	if !w.since.IsZero() {
		w.book(m, time.Now())
		w.since = time.Time{}
	}
}

func (w *Watch) book(m *Member, now time.Time) {
	if w.since.IsZero() {
		return
	}
	d := now.Sub(w.since)
	m.Counts.WaitTime += d
	for _, r := range w.late {
		m.Counts.Edges[r].Waited += d
	}
}

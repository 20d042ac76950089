package core

import (
	"slices"
	"time"
)

// Stats is what an object has done since it was made, or what the collective calls of a job have waited.
type Stats struct {
	Scatters, Gathers uint64
	ScatterTime       time.Duration // copying and publishing
	WaitTime          time.Duration // for other ranks
	FoldTime          time.Duration
	Edges             []Edge // by rank; the own entry stays zero
}

// Copy is what a call may change meanwhile no more.
func (s Stats) Copy() Stats {
	s.Edges = slices.Clone(s.Edges)
	return s
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
	// Waited is the time for which the rank was waited for: of a wait for several, its share.
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

// waited books a wait for ranks: each of them has its share, so that all together are WaitTime.
func (s *Stats) waited(d time.Duration, late []int) {
	s.WaitTime += d
	for _, r := range late {
		s.Edges[r].Waited += d / time.Duration(len(late))
	}
}

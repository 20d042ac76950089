package rule

import (
	"math"

	"malt/rdma"
)

// Boxes is what the boxes of the rule keep, and so how a gather takes updates out.
func (r Rule) Boxes() rdma.Mode {
	switch r.Kind {
	case BSP:
		return rdma.ByClock
	case NotifyAck:
		return rdma.Queue(int(r.N))
	}
	return rdma.Newest
}

// MayScatter tells whether a rank that has scattered so many times since its last gather may
// do so again: where a scatter may wait, one more would, on a cycle of ranks, wait for
// itself.
func (r Rule) MayScatter(ahead uint64) bool {
	switch r.Kind {
	case BSP:
		return ahead < 1
	case NotifyAck:
		return ahead < r.N
	}
	return true
}

// MayGather tells whether that rank may gather.
func (r Rule) MayGather(ahead uint64) bool { return r.Kind != BSP || ahead > 0 }

// WaitsForClocks tells whether there are clocks for which Waits is true.
func (r Rule) WaitsForClocks() bool { return r.Kind == BSP || r.Kind == SSP }

// Waits tells whether a gather at clock own lacks a rank that is at that clock. The caller
// asks for in-neighbours, where the boxes keep updates by clock for every rank. Queues wait
// for updates, not for clocks.
func (r Rule) Waits(own, clock uint64) bool {
	switch r.Kind {
	case BSP:
		return clock < own
	case SSP:
		return clock+r.N < own
	}
	return false
}

// Slack is by how many clocks a rank may be behind without being waited for.
func (r Rule) Slack() uint64 {
	if r.Kind == SSP || r.Kind == BSP {
		return r.N
	}
	return math.MaxUint64
}

// Takes tells whether a gather at clock own may fold an update of that clock
// (G7 for ssp; the same set on all ranks for bsp).
func (r Rule) Takes(own, clock uint64) bool {
	switch r.Kind {
	case BSP:
		return clock == own
	case SSP:
		return clock+r.N >= own
	}
	return true
}

// Standing is what is known of a rank that a call lacks.
type Standing uint8

const (
	Present Standing = iota // it may still come
	Away                    // it has closed the object, has left, or is in a collective call
	Lost                    // it is dead, and the job goes on without it
	Dead                    // it is dead, and the job ends
)

// Verdict is what a call does about a rank that it lacks.
type Verdict uint8

const (
	Wait    Verdict = iota
	Without         // go on without it
	Fail
)

// About is the verdict on a rank of that standing. No call waits for a rank that cannot
// come; a death ends it where it ends the job.
func About(s Standing) Verdict {
	return [...]Verdict{Present: Wait, Away: Without, Lost: Without, Dead: Fail}[s]
}

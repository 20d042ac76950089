package libmalt

import "malt/libmalt/internal/core"

// Stats is what an object has done since it was made, Edge what went to and came from one
// rank.
type (
	Stats = core.Stats
	Edge  = core.Edge
)

// Trace is what other processes see of a rank: where it is Now, and its last events.
type (
	Trace = core.Trace
	Now   = core.Now
	Event = core.Event
)

// Trouble is something about the values of an object that its user should look at.
type Trouble = core.Trouble

// NowMagic names the layout of Now.
const NowMagic = core.NowMagic

// NewTrace is for memory that is zero, and the time by CLOCK_MONOTONIC.
func NewTrace(now *Now, events []Event, monotonic func() uint64) *Trace {
	return core.NewTrace(now, events, monotonic)
}

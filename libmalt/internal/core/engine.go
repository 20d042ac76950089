package core

import (
	"context"

	"malt/libmalt/reduce"
)

// Engine carries a vector without boxes. What it sends, when a gather may go on, and what
// the array is after it, is the engine's concern; clock, statistics, marks, timeouts and
// errors are not.
type Engine interface {
	// Memory is as of a Route.
	Memory() []byte
	// Join waits until the other ranks have made their engines; Close leaves it: no rank
	// waits for this one in it any longer.
	Join(ctx context.Context) error
	Close() error

	// Scatter sends the array as it is, with that weight, at clock. Gather takes what has
	// come, at the clock of the last scatter, with that slack. Late are the ranks that the
	// last step of either lacked; Age is how far the last gather was behind.
	Scatter(clock uint64, weight float64) Stepper
	Gather(clock, slack uint64) Stepper
	Late() []int
	Age() uint64

	// Level says that a collective call has lifted the clock of this rank; Settled, that all
	// have the same values now, with summed the sum of what those ranks Share, since the
	// same call: nothing that was sent before counts any more.
	Level(clock uint64)
	Settled(summed []int)
	Share() (data []byte, since uint64)
	// AllReduce and Writers are as of a Route.
	AllReduce(c Call, op reduce.Op) Stepper
	Writers(late []int) []int

	// Moved is how many bytes a scatter moves to another rank. Count adds what has gone to
	// each, and has come from it, since the last time.
	Moved(rank int) int
	Count(edges []Edge)
}

// Server is an engine whose object has been closed, while other ranks may need it.
type Server interface {
	// Needed are the ranks that do. Release ends it.
	Needed() []int
	Release() error
}

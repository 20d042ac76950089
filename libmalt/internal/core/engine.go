package core

import (
	"context"

	"malt/libmalt/reduce"
)

// Carrier carries a vector without boxes: as an Engine or as a Meeting. What it sends, when a call
// may go on, and what the array is after it, is its own concern; clock, statistics, marks,
// timeouts and errors are not.
type Carrier interface {
	// Memory is as of a Route.
	Memory() []byte
	// Join waits until the other ranks have made their carriers; Close leaves it: no rank
	// waits for this one in it any longer.
	Join(ctx context.Context) error
	Close() error
	// Late are the ranks that the last step of a call lacked.
	Late() []int
	// Count adds what has gone to each, and has come from it, since the last time.
	Count(edges []Edge)
}

// Meeting is a carrier whose ranks meet in each sync: it is a collective call.
type Meeting interface {
	Carrier
	// Begin begins the sync that is the collective call of that number. Step goes on with it,
	// and never blocks; it is done, once and for all, when the others need no more of this rank,
	// and all has come.
	// Finish makes that the result. A call that has been given up gets no more steps, and has
	// changed nothing that the program sees.
	Begin(number uint64)
	Step() (done bool, err error)
	Finish()
	// Wanted is what a sync brings besides the array: rows, and a byte for each, 1 if no rank
	// holds it.
	Wanted() (values, missing []byte)
}

// Engine is a carrier that sends and takes what has come, each at its time.
type Engine interface {
	Carrier

	// Scatter sends the array as it is, with that weight, at clock. Gather takes what has
	// come, at the clock of the last scatter, with that slack. Gathered is of the last one: from
	// how many ranks it has brought new changes, and how far it was behind.
	Scatter(clock uint64, weight float64) Stepper
	Gather(clock, slack uint64) Stepper
	Gathered() (ranks int, age uint64)

	// Through appends to list the ranks by which changes of late ones come.
	Through(list, late []int) []int

	// Level says that a collective call has lifted the clock of this rank; Settled, that all
	// have the same values now, with summed the sum of what those ranks Share, since the
	// same call: nothing that was sent before counts any more. weight is of what this rank has not
	// sent yet, negative: that of its last scatter, or 1.
	Level(clock uint64)
	Settled(summed []int)
	Share(weight float64) (data []byte, since uint64)
	// Inherit comes before each attempt of the call that sums what those among it Share. This
	// rank adds to that what ranks that died before had sent, and only it has.
	Inherit(among []int) error
	// AllReduce and Writers are as of a Route.
	AllReduce(c Call, op reduce.Op) Stepper
	Writers(late []int) []int

	// Moved is how many bytes a scatter moves to another rank.
	Moved(rank int) int
}

// Server is an engine whose object has been closed, while other ranks may need it.
type Server interface {
	// Needed are the ranks that do. Release ends it.
	Needed() []int
	Release() error
}

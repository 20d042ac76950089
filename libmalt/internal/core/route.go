package core

import (
	"context"

	"malt/libmalt/reduce"
	"malt/rdma"
)

// Route carries the syncs of one vector without its boxes. In each sync it may fall
// back on them, for all ranks alike. Its memory and words are made with the vector and
// stay when the vector is configured. A vector without a route has BoxesOnly.
type Route interface {
	// Memory is the mapping that begins with this rank's array; it outlives Close.
	// nil: the array has a mapping of its own.
	Memory() []byte
	// Join waits until the other ranks have made their routes.
	Join(ctx context.Context) error
	// Among says which ranks have made the vector: each has what the others have made.
	Among(ranks []int)
	// Close leaves the route: no rank waits for this one in it any longer.
	Close() error

	// Begin arrives at clock with the array as it is; false: this sync does not take
	// the route. The caller has checked the weight, and that all ranks send to all in
	// lock-step and fold to the same result.
	Begin(clock uint64, op reduce.Op, weight float64) bool
	// Step continues the sync and never blocks. It is called again after Leave, by the
	// gather that is due, and after Arrived, if that gather was not ended as folded;
	// its answer is the same then.
	Step() (Outcome, error)
	// Late are the ranks that the last step lacked.
	Late() []int
	// CameLast is the rank that came last to the last sync, if this rank has been woken for
	// several at once; negative: not known.
	CameLast() int
	// Leave is called when this rank gives the sync up, so that no rank waits for it.
	// What it has to fold or to send comes now. Underway: it has folded its part, and
	// Step says when the others have.
	Leave() (Outcome, error)
	// Scatters is called before this rank scatters by itself at clock, if all ranks
	// send to all in lock-step.
	Scatters(clock uint64)

	// AllReduce makes c an allreduce of the array on this route; nil: it goes by
	// messages.
	AllReduce(c Call, op reduce.Op) Stepper
	// Writers appends to late the ranks that may still write into the array, after
	// this rank has given a call up.
	Writers(late []int) []int

	// Stand and Held are for members that settle, as of a Lockstep, about the results of
	// syncs: the last one that is complete here, and the one that has begun last.
	Stand() (at Stand, ok bool)
	Held(clock uint64) rdma.Update

	// Moved is how many bytes a sync moves from this rank to another, and as many back.
	Moved(rank int) int
}

// Outcome is the state of a sync after a step, or after a rank has left it.
type Outcome int

const (
	Underway Outcome = iota // waits for the ranks that are late
	Arrived                 // the array has the result
	Owed                    // left; the result still comes, and a gather takes it
	UseBoxes                // next: scatter, then gather
	InBoxes                 // next: gather; the array is in the box, at the clock of the sync
)

// BoxesOnly is the absence of a route. A route embeds it for the methods that it does
// not need.
type BoxesOnly struct{}

var _ Route = BoxesOnly{}

func (BoxesOnly) Memory() []byte                        { return nil }
func (BoxesOnly) Join(context.Context) error            { return nil }
func (BoxesOnly) Among([]int)                           {}
func (BoxesOnly) Close() error                          { return nil }
func (BoxesOnly) Begin(uint64, reduce.Op, float64) bool { return false }
func (BoxesOnly) Step() (Outcome, error)                { return UseBoxes, nil }
func (BoxesOnly) Late() []int                           { return nil }
func (BoxesOnly) CameLast() int                         { return -1 }
func (BoxesOnly) Leave() (Outcome, error)               { return UseBoxes, nil }
func (BoxesOnly) Scatters(uint64)                       {}
func (BoxesOnly) AllReduce(Call, reduce.Op) Stepper     { return nil }
func (BoxesOnly) Writers(late []int) []int              { return late }
func (BoxesOnly) Stand() (Stand, bool)                  { return Stand{}, false }
func (BoxesOnly) Held(uint64) rdma.Update               { return rdma.Update{} }
func (BoxesOnly) Moved(int) int                         { return 0 }

package libmalt

import (
	"context"
	"errors"

	"malt/internal/say"
	"malt/rdma"
)

// What went wrong, for errors.Is. The sentence of the wrapping error names the
// value, what was expected and what to do. A dead rank is an *rdma.PeerError.
var (
	// ErrInvalid: an argument or an option is wrong.
	ErrInvalid = errors.New("invalid argument")
	// ErrBusy: the object is in a call of another goroutine, in a fold, or in a
	// call that ran into its timeout and keeps its place.
	ErrBusy = errors.New("busy")
	// ErrTimeout: the wait ran into its timeout. The call keeps its place.
	ErrTimeout = errors.New("timed out")
	// ErrLeft: a rank that a collective call needs has ended, or gave it up.
	ErrLeft = errors.New("rank has left")
	// ErrMismatch: the ranks disagree about an object, or about which collective
	// call this is.
	ErrMismatch = errors.New("ranks disagree")
	// ErrState: not now, for example a second scatter in bsp without a gather.
	ErrState = errors.New("not in this state")
	// ErrCancelled: the call was given up by Cancel.
	ErrCancelled = errors.New("cancelled")
	// ErrClosed: the object, or its world, was closed.
	ErrClosed = errors.New("closed")
	// ErrUnsupported: not with this transport, graph or consistency.
	ErrUnsupported = rdma.ErrNotSupported
	// ErrNoMemory: the memory is not there; nothing was reserved.
	ErrNoMemory = rdma.ErrNoMemory
	// ErrRankTaken: another live process already is this rank.
	ErrRankTaken = rdma.ErrRankTaken
)

// wait is what a call could not go on without.
type wait struct {
	call string // as a program writes it
	whom string // it waited for, and where they are
	do   string // about it
	more string // topic of the guide
}

// The advice for the most frequent reasons why a rank does not come.
const (
	allMustCall = "All ranks must make this call. Is it under `if rank == 0`?"
	allMustSync = "Each rank has to sync the same vectors in the same order. Does a rank leave one out, or is it only slow?"
)

// timeout is ErrTimeout that errors.Is also finds as the context's error.
type timeout struct {
	said  *say.Error
	cause error
}

func (t *timeout) Error() string   { return t.said.Error() }
func (t *timeout) Unwrap() []error { return []error{t.said, t.cause} }

// expired makes the error of a wait whose context ended.
func expired(ctx context.Context, w wait) error {
	cause := ctx.Err()
	if cause == nil {
		cause = context.DeadlineExceeded
	}
	return &timeout{&say.Error{
		Kind: ErrTimeout, Call: w.call, What: w.call + " timed out", Where: "waited for " + w.whom, Do: w.do, Topic: w.more,
	}, cause}
}

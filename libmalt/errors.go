package libmalt

import (
	"errors"

	"malt/libmalt/internal/core"
	"malt/rdma"
)

// What went wrong, for errors.Is. The sentence of the wrapping error names the
// value, what was expected and what to do. A dead rank is an *rdma.PeerError.
var (
	// ErrInvalid: an argument or an option is wrong.
	ErrInvalid = core.ErrInvalid
	// ErrBusy: the object is in a call of another goroutine, or in a fold.
	ErrBusy = core.ErrBusy
	// ErrTimeout: the wait ran into its timeout. The call is given up.
	ErrTimeout = core.ErrTimeout
	// ErrLeft: a rank that a collective call needs has ended, or gave it up.
	ErrLeft = core.ErrLeft
	// ErrMismatch: the ranks disagree about an object, or about which collective
	// call this is.
	ErrMismatch = core.ErrMismatch
	// ErrState: not now, for example a second scatter in bsp without a gather.
	ErrState = core.ErrState
	// ErrCancelled: the call was ended by another one.
	ErrCancelled = errors.New("cancelled")
	// ErrClosed: the object, or its world, was closed.
	ErrClosed = core.ErrClosed
	// ErrUnsupported: not with this transport, graph or consistency.
	ErrUnsupported = rdma.ErrNotSupported
	// ErrNoMemory: the memory is not there; nothing was reserved.
	ErrNoMemory = rdma.ErrNoMemory
	// ErrRankTaken: another live process already is this rank.
	ErrRankTaken = rdma.ErrRankTaken
)

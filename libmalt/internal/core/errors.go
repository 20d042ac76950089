package core

import (
	"errors"

	"malt/internal/say"
	"malt/rdma"
)

// The errors of the same names in libmalt.
var (
	ErrInvalid     = errors.New("invalid argument")
	ErrBusy        = errors.New("busy")
	ErrTimeout     = errors.New("timed out")
	ErrLeft        = errors.New("rank has left")
	ErrMismatch    = errors.New("ranks disagree")
	ErrState       = errors.New("not in this state")
	ErrClosed      = errors.New("closed")
	ErrNoMemory    = rdma.ErrNoMemory
	ErrUnsupported = rdma.ErrNotSupported

	ErrInterrupted = errors.New("interrupted")
)

// CountsNoMore is the error of a gather where changes have come from a rank since a collective
// call of which this one knows nothing.
func CountsNoMore(gather string, rank int) error {
	return say.Errorf(ErrState, "%s: rank %d counts no changes of this rank any more", gather, rank).
		In(gather).At("it has completed a collective call of the vector, which this rank gave up").
		Try(`Call broadcast() or allreduce("mean") on all ranks: from there changes count again.`)
}

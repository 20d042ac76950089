package core

import (
	"errors"

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

package rdma

import (
	"errors"
	"fmt"
)

var (
	// ErrNotSupported: this transport cannot do that; another one can.
	ErrNotSupported = errors.New("rdma: not supported by this transport")
	// ErrLeft: the peer closed its end in good order. Not a failure.
	ErrLeft = errors.New("rdma: peer has left")
	// ErrClosed: this end was closed before the call.
	ErrClosed = errors.New("rdma: closed")
	// ErrNoMemory: the machine or the control group cannot back the memory asked
	// for; nothing was reserved. Wrapped with the numbers.
	ErrNoMemory = errors.New("rdma: not enough memory")
	// ErrCorrupt: a slot's header does not fit its box. Wrapped with what was
	// found and what was expected.
	ErrCorrupt = errors.New("rdma: corrupt update")
	// ErrRankTaken: another live process already is this rank.
	ErrRankTaken = errors.New("rdma: rank is taken")
)

// PeerError says that a rank is dead: the kernel said so, or the rank itself
// did before it ended.
type PeerError struct {
	Rank int
	Op   string // what was being done, "" when nothing was
	Err  error  // why it is known to be dead
}

func (e *PeerError) Error() string {
	if e.Op == "" {
		return fmt.Sprintf("rank %d is dead: %v", e.Rank, e.Err)
	}
	return fmt.Sprintf("%s: rank %d is dead: %v", e.Op, e.Rank, e.Err)
}

func (e *PeerError) Unwrap() error { return e.Err }

// MismatchError says that two ranks made the same box with different Specs.
type MismatchError struct {
	Name   string
	Rank   int // whose Spec Theirs is
	Ours   string
	Theirs string
}

func (e *MismatchError) Error() string {
	return fmt.Sprintf("%s: this rank has %s, rank %d has %s; both must be the same", e.Name, e.Ours, e.Rank, e.Theirs)
}

// ConfigError says that what this process was told about its job cannot be so,
// or is not what the other ranks were told: rank, size, store, token, transport.
type ConfigError struct{ Text string }

func (e *ConfigError) Error() string { return e.Text }

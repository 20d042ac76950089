package rdma

import (
	"errors"
	"fmt"
	"slices"

	"malt/internal/say"
)

var (
	// ErrNotSupported: this transport cannot do that; another one can.
	ErrNotSupported = errors.New("not supported by this transport")
	// ErrLeft: the peer closed its end in good order. Not a failure.
	ErrLeft = errors.New("peer has left")
	// ErrClosed: this end was closed before the call.
	ErrClosed = errors.New("closed")
	// ErrNoMemory: the machine or the control group cannot back the memory asked
	// for; nothing was reserved. Wrapped with the numbers.
	ErrNoMemory = errors.New("not enough memory")
	// ErrCorrupt: a slot's header does not fit its box. Wrapped with what was
	// found and what was expected.
	ErrCorrupt = errors.New("corrupt update")
	// ErrRankTaken: another live process already is this rank.
	ErrRankTaken = errors.New("rank is taken")
	// ErrExpelled: this rank takes part no longer. The others have gone on without it, or have
	// it on the smaller side of a cut. Final.
	ErrExpelled = errors.New("the others have gone on without this rank")
	// ErrConfig: what this process was told about its job cannot be so, or is not
	// what the other ranks were told: rank, size, store, token, transport.
	ErrConfig = errors.New("wrong configuration")
)

// NoMemory is ErrNoMemory with the numbers.
func NoMemory(numbers error) error {
	return say.Errorf(ErrNoMemory, "not enough memory: %v", numbers).
		Try("Make it smaller, use fewer ranks, or raise the limit.").More("out-of-memory")
}

// CheckPeers fails unless each of ranks is another rank than own of so many, named once;
// what says what they are.
func CheckPeers(what string, ranks []int, own, size int) error {
	for i, r := range ranks {
		if r < 0 || r >= size || r == own || slices.Contains(ranks[:i], r) {
			return fmt.Errorf("%s %v: each must be a rank below %d and not rank %d itself, named once", what, ranks, size, own)
		}
	}
	return nil
}

// During puts what was being done before an error: it is deferred.
func During(err *error, format string, args ...any) {
	if *err != nil {
		*err = fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), *err)
	}
}

// Gone turns the state of a peer into the error of what was being done, nil while it takes part.
func Gone(state error, op string, peer int) error {
	var dead *PeerError
	switch {
	case state == nil:
		return nil
	case errors.As(state, &dead):
		return dead.During(op)
	}
	return fmt.Errorf("%s: rank %d: %w", op, peer, state)
}

// Death is how a rank died. The numbers travel between ranks and across the C ABI.
type Death uint8

const (
	// Ended: its process has ended without a word.
	Ended Death = 1 + iota
	// Failed: it said so itself, after an error of its own.
	Failed
	// Unreachable: its host gives no sign of life.
	Unreachable
	// Deaths is one more than the largest.
	Deaths
)

// PeerError says that a rank is dead: the kernel said so, or the rank itself
// did before it ended. Rank is the root cause: a rank that ended because of the
// death of another one is dead as well, and its state names the other one.
type PeerError struct {
	Rank int
	Kind Death
	Op   string // what was being done, "" when nothing was
	Err  error  // how it is known to be dead
}

func (e *PeerError) Error() string {
	if e.Op == "" {
		return fmt.Sprintf("rank %d is dead: %v", e.Rank, e.Err)
	}
	return fmt.Sprintf("%s: rank %d is dead: %v", e.Op, e.Rank, e.Err)
}

func (e *PeerError) Unwrap() error { return e.Err }

// During is the same death, met while op was being done.
func (e *PeerError) During(op string) *PeerError { return &PeerError{e.Rank, e.Kind, op, e.Err} }

// HasFailed is the death of a rank that says so itself.
func HasFailed(rank int, reason string) *PeerError {
	if reason == "" {
		reason = "it gave up"
	}
	return &PeerError{Rank: rank, Kind: Failed, Err: errors.New(reason)}
}

// Apart is the death of a rank that does not reach another one, and why.
func Apart(rank, other int, why error) *PeerError {
	return &PeerError{Rank: rank, Kind: Unreachable, Err: &ApartError{[2]int{min(rank, other), max(rank, other)}, why}}
}

// ApartError is that two ranks do not reach each other: one of them counts as dead.
type ApartError struct {
	Ranks [2]int // ascending
	Why   error
}

func (e *ApartError) Error() string {
	return fmt.Sprintf("ranks %d and %d cannot reach each other: %v", e.Ranks[0], e.Ranks[1], e.Why)
}

func (e *ApartError) Unwrap() error { return e.Why }

// Heard is the death of teller as rank self of size ranks has it, where teller said
// that it ends because of e. What another process says is checked. To the one of two ranks
// that do not reach each other the other one is dead; else a rank that considers this one
// dead has ended for its own reasons.
func (e *PeerError) Heard(teller, self, size int) *PeerError {
	var apart *ApartError
	switch {
	case e.Rank == self && self != teller && errors.As(e.Err, &apart):
		return Apart(apart.Ranks[0]+apart.Ranks[1]-self, self, apart.Why)
	case e.Rank == self && self != teller:
		return HasFailed(teller, fmt.Sprintf("it considers this rank dead: %v", e.Err))
	case e.Rank < 0 || e.Rank >= size || e.Kind < Ended || e.Kind >= Deaths:
		return HasFailed(teller, e.Err.Error())
	}
	return e
}

// MismatchError says that two ranks made the same box with different Specs.
type MismatchError struct {
	Name   string
	Rank   int // whose Spec Theirs is
	Ours   string
	Theirs string
}

func (e *MismatchError) Error() string { return e.said().Error() }

func (e *MismatchError) Unwrap() error { return e.said() }

func (e *MismatchError) said() *say.Error {
	return say.Errorf(nil, "the ranks disagree about %s", e.Name).At("this rank: %s; rank %d: %s", e.Ours, e.Rank, e.Theirs).More("mismatch")
}

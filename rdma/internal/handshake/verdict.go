package handshake

import (
	"errors"
	"fmt"

	"malt/rdma"
)

// Verdict says why a connection is refused.
type Verdict uint32

// Verdicts, as they travel.
const (
	Accepted Verdict = iota
	OtherVersion
	WrongToken
	OtherJob
	OtherSize
	NoSuchRank
	OtherGeneration
	OtherProcess
)

func (v Verdict) String() string {
	switch v {
	case OtherVersion:
		return "it speaks another version of the protocol; all ranks must use the same version of MALT"
	case WrongToken:
		return "the token is wrong; all ranks of a job must have the same MALT_TOKEN"
	case OtherJob:
		return "it belongs to another job"
	case OtherSize:
		return "it was started with another number of ranks"
	case NoSuchRank:
		return "it is not the rank that was meant"
	case OtherGeneration:
		return "it is in another generation of the membership"
	case OtherProcess:
		return "another process is, or was, that rank"
	}
	return fmt.Sprintf("verdict %d, which this version does not know", uint32(v))
}

// Refusal is a peer's verdict, or ours on a peer.
type Refusal struct {
	Verdict
	ours, theirs uint16 // versions, if they differ
}

func (e *Refusal) Error() string {
	if e.Verdict == OtherVersion {
		return fmt.Sprintf("%s (version %d here, %d there)", e.Verdict, e.ours, e.theirs)
	}
	return e.String()
}

// Unwrap makes it a mistake in what the ranks were told.
func (e *Refusal) Unwrap() error { return &rdma.ConfigError{Text: e.Error()} }

// ErrStranger: no rank of MALT answers, or one that cannot prove it.
var ErrStranger = errors.New("what answers there is not a rank of MALT")

// ErrTLS: the other end wants to speak TLS, and this one does not.
var ErrTLS = fmt.Errorf("%w: it speaks TLS", ErrStranger)

package handshake

import (
	"errors"
	"fmt"

	"malt/internal/say"
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
	OtherEncryption
	Expelled
	CountedDead
)

// sentences are what each says, and what to do about it.
var sentences = [...]struct{ what, do string }{
	OtherVersion:    {"it speaks another version of the protocol", "All ranks must use the same version of MALT."},
	WrongToken:      {"the token is wrong", "All ranks of a job need the same token (MALT_TOKEN, malt run --token-file)."},
	OtherJob:        {what: "it belongs to another job"},
	OtherSize:       {what: "it was started with another number of ranks"},
	NoSuchRank:      {what: "it is not the expected rank"},
	OtherGeneration: {what: "it is in another generation of the membership"},
	OtherProcess:    {what: "another process is, or was, that rank"},
	OtherEncryption: {"only one of the two encrypts what it sends",
		"All ranks of a job must encrypt what they send between hosts, or none (MALT_ENCRYPT, malt run --encrypt)."},
	Expelled:    {what: "the others have gone on without this rank"},
	CountedDead: {what: "it could not reach this rank, and counts it as dead"},
}

func (v Verdict) String() string {
	if int(v) < len(sentences) && v != Accepted {
		return sentences[v].what
	}
	return fmt.Sprintf("verdict %d, which this version does not know", uint32(v))
}

// Advice is what to do about it; "" where nothing is.
func (v Verdict) Advice() string {
	if int(v) < len(sentences) {
		return sentences[v].do
	}
	return ""
}

// Refusal is a peer's verdict, or ours on a peer.
type Refusal struct {
	Verdict
	ours, theirs uint16 // versions, if they differ
	encrypts     bool   // this end, where the other does not or the other way round
}

func (e *Refusal) Error() string {
	switch {
	case e.Verdict == OtherVersion:
		return fmt.Sprintf("%s (version %d here, %d there)", e.Verdict, e.ours, e.theirs)
	case e.Verdict == OtherEncryption && e.encrypts:
		return e.String() + ": this rank does, and the other does not"
	case e.Verdict == OtherEncryption:
		return e.String() + ": this rank does not, and the other does"
	}
	return e.String()
}

// Unwrap makes it a mistake in what the ranks were told.
func (e *Refusal) Unwrap() error {
	return say.Errorf(rdma.ErrConfig, "%s", e.Error()).Try("%s", e.Advice())
}

// ErrStranger: no rank of MALT answers, or one that cannot prove it.
var ErrStranger = errors.New("the program that answers there is not a rank of MALT")

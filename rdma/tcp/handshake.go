package tcp

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"malt/rdma"
)

// The handshake, in messages of fixed length. The dialling end proves first that
// it has the token, so that a stranger who dials learns nothing; no message can
// be used again, since each proof covers a fresh random number of the other end.
//
//	hello      dialler   104 bytes: version, job, who, whom, nonce
//	challenge  listener   56: version, verdict, which process, nonce
//	proof      dialler    32: HMAC(key, "dialler"  hello challenge session)
//	welcome    listener   36: verdict, HMAC(key, "listener" hello challenge session verdict)
//
// session is what TLS has agreed on, if it is used: so who sits between the two
// cannot pass the proofs on.
const (
	magic   = 0x3150_4354_544c_414d // "MALTTCP1"
	version = 1

	helloBytes     = 104
	challengeBytes = 56
	proofBytes     = sha256.Size
	welcomeBytes   = 4 + proofBytes
)

// verdict says why a connection is refused.
type verdict uint32

const (
	accepted verdict = iota
	otherVersion
	wrongToken
	otherJob
	otherSize
	noSuchRank
	otherGeneration
	otherProcess
)

func (v verdict) String() string {
	switch v {
	case otherVersion:
		return "it speaks another version of the protocol; all ranks must use the same version of MALT"
	case wrongToken:
		return "the token is wrong; all ranks of a job must have the same MALT_TOKEN"
	case otherJob:
		return "it belongs to another job"
	case otherSize:
		return "it was started with another number of ranks"
	case noSuchRank:
		return "it is not the rank that was meant"
	case otherGeneration:
		return "it is in another generation of the membership"
	case otherProcess:
		return "another process is, or was, that rank"
	}
	return fmt.Sprintf("verdict %d, which this version does not know", uint32(v))
}

// refusal is a peer's verdict, or ours on a peer.
type refusal struct {
	verdict
	theirs uint16 // version, if it differs
}

func (e *refusal) Error() string {
	if e.verdict == otherVersion {
		return fmt.Sprintf("%s (version %d here, %d there)", e.verdict, version, e.theirs)
	}
	return e.String()
}

// Unwrap makes it a mistake in what the ranks were told.
func (e *refusal) Unwrap() error { return &rdma.ConfigError{Text: e.Error()} }

var errStranger = errors.New("what answers there is not a rank of MALT")

// self is what an end says of itself and expects of the other.
type self struct {
	key         []byte
	job         [sha256.Size]byte
	rank, size  int
	generation  uint32
	incarnation uint64 // of this process; never 0
}

func newSelf(c *Config) self {
	m := hmac.New(sha256.New, c.Token)
	m.Write([]byte("MALT rdma/tcp"))
	var r [8]byte
	_, _ = rand.Read(r[:]) // never fails
	return self{
		key: m.Sum(nil), job: sha256.Sum256([]byte(c.Job)), rank: c.Rank, size: c.Size,
		generation: c.Generation, incarnation: binary.LittleEndian.Uint64(r[:]) | 1,
	}
}

// hello is the dialler's first message.
type hello struct {
	version     uint16
	job         [sha256.Size]byte
	from, to    uint32
	size        uint32
	generation  uint32
	incarnation uint64
	nonce       [32]byte
}

func (h *hello) encode() []byte {
	b := make([]byte, 0, helloBytes)
	b = binary.LittleEndian.AppendUint64(b, magic)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.version))
	b = append(b, h.job[:]...)
	for _, v := range []uint32{h.from, h.to, h.size, h.generation} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = binary.LittleEndian.AppendUint64(b, h.incarnation)
	return append(b, h.nonce[:]...)
}

func decodeHello(b []byte) (h hello, err error) {
	if len(b) != helloBytes || binary.LittleEndian.Uint64(b) != magic {
		return h, errStranger
	}
	h.version = binary.LittleEndian.Uint16(b[8:])
	copy(h.job[:], b[16:])
	h.from = binary.LittleEndian.Uint32(b[48:])
	h.to = binary.LittleEndian.Uint32(b[52:])
	h.size = binary.LittleEndian.Uint32(b[56:])
	h.generation = binary.LittleEndian.Uint32(b[60:])
	h.incarnation = binary.LittleEndian.Uint64(b[64:])
	copy(h.nonce[:], b[72:])
	return h, nil
}

func encodeChallenge(v verdict, incarnation uint64, nonce [32]byte) []byte {
	b := make([]byte, 0, challengeBytes)
	b = binary.LittleEndian.AppendUint64(b, magic)
	b = binary.LittleEndian.AppendUint32(b, version)
	b = binary.LittleEndian.AppendUint32(b, uint32(v))
	b = binary.LittleEndian.AppendUint64(b, incarnation)
	return append(b, nonce[:]...)
}

func decodeChallenge(b []byte) (v verdict, theirs uint16, incarnation uint64, err error) {
	if len(b) != challengeBytes || binary.LittleEndian.Uint64(b) != magic {
		return 0, 0, 0, errStranger
	}
	return verdict(binary.LittleEndian.Uint32(b[12:])), binary.LittleEndian.Uint16(b[8:]), binary.LittleEndian.Uint64(b[16:]), nil
}

// proof is what only who has the token can make.
func (s *self) proof(who string, parts ...[]byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(who))
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

// session is what both ends of a TLS connection, and nobody else, know of it.
func session(rw io.ReadWriter) ([]byte, error) {
	c, ok := rw.(*tls.Conn)
	if !ok {
		return nil, nil
	}
	if err := c.Handshake(); err != nil {
		return nil, err
	}
	state := c.ConnectionState()
	return state.ExportKeyingMaterial("EXPORTER-MALT-rdma-tcp", nil, 32)
}

// dial is the handshake of the end that dialled rank to. It returns what names
// the process there.
func (s *self) dial(rw io.ReadWriter, to int) (incarnation uint64, err error) {
	bound, err := session(rw)
	if err != nil {
		return 0, err
	}
	h := hello{version: version, job: s.job, from: uint32(s.rank), to: uint32(to), size: uint32(s.size), generation: s.generation, incarnation: s.incarnation}
	_, _ = rand.Read(h.nonce[:])
	first := h.encode()
	if _, err := rw.Write(first); err != nil {
		return 0, err
	}
	var challenge [challengeBytes]byte
	if _, err := io.ReadFull(rw, challenge[:]); err != nil {
		return 0, err
	}
	v, theirs, incarnation, err := decodeChallenge(challenge[:])
	if err != nil {
		return 0, err
	}
	if v != accepted || theirs != version {
		return 0, &refusal{otherVersion, theirs}
	}
	if _, err := rw.Write(s.proof("dialler", first, challenge[:], bound)); err != nil {
		return 0, err
	}
	var welcome [welcomeBytes]byte
	if _, err := io.ReadFull(rw, welcome[:]); err != nil {
		return 0, err
	}
	v = verdict(binary.LittleEndian.Uint32(welcome[:]))
	if v == wrongToken {
		return 0, &refusal{verdict: wrongToken} // it cannot prove that it has ours
	}
	if !hmac.Equal(welcome[4:], s.proof("listener", first, challenge[:], bound, welcome[:4])) {
		return 0, errStranger
	}
	if v != accepted {
		return 0, &refusal{verdict: v}
	}
	return incarnation, nil
}

// accept is the handshake of the end that listens. Nothing that the other says is
// used before it has proved that it has the token; then permit, which may refuse
// it still, is asked.
func (s *self) accept(rw io.ReadWriter, permit func(from int, incarnation uint64) verdict) (from int, err error) {
	bound, err := session(rw)
	if err != nil {
		return 0, err
	}
	var first [helloBytes]byte
	if _, err := io.ReadFull(rw, first[:]); err != nil {
		return 0, err
	}
	h, err := decodeHello(first[:])
	if err != nil {
		return 0, err
	}
	var nonce [32]byte
	_, _ = rand.Read(nonce[:])
	v := accepted
	if h.version != version {
		v = otherVersion
	}
	challenge := encodeChallenge(v, s.incarnation, nonce)
	if _, err := rw.Write(challenge); err != nil {
		return 0, err
	}
	if v != accepted {
		return 0, &refusal{v, h.version}
	}
	var proof [proofBytes]byte
	if _, err := io.ReadFull(rw, proof[:]); err != nil {
		return 0, err
	}
	switch {
	case !hmac.Equal(proof[:], s.proof("dialler", first[:], challenge, bound)):
		v = wrongToken
	case h.job != s.job:
		v = otherJob
	case h.size != uint32(s.size):
		v = otherSize
	case h.to != uint32(s.rank) || h.from <= h.to || h.from >= h.size:
		v = noSuchRank
	case h.generation != s.generation:
		v = otherGeneration
	default:
		v = permit(int(h.from), h.incarnation)
	}
	welcome := binary.LittleEndian.AppendUint32(nil, uint32(v))
	if v == wrongToken {
		welcome = append(welcome, make([]byte, proofBytes)...)
	} else {
		welcome = append(welcome, s.proof("listener", first[:], challenge, bound, welcome)...)
	}
	if _, err := rw.Write(welcome); err != nil {
		return 0, err
	}
	if v != accepted {
		return 0, &refusal{verdict: v}
	}
	return int(h.from), nil
}

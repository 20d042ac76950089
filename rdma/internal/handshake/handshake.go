package handshake

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
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
	HelloBytes     = 104
	ChallengeBytes = 56
	ProofBytes     = sha256.Size
	WelcomeBytes   = 4 + ProofBytes
)

// Protocol is one that begins with a handshake. Proofs of one are none in
// another.
type Protocol struct {
	Magic   uint64
	Version uint16
	Name    string // "MALT rdma/tcp"
}

// Self is what an end says of itself.
type Self struct {
	protocol Protocol
	key      []byte
	hello    Hello                       // but To and Nonce
	tls      func() (*tls.Config, error) // made when it is first needed
}

// New makes an end that has the token. Of hello the version, To, the incarnation
// and the nonce are filled in.
func New(p Protocol, token []byte, hello Hello) *Self {
	m := hmac.New(sha256.New, token)
	m.Write([]byte(p.Name))
	hello.Version = p.Version
	var r [8]byte
	_, _ = rand.Read(r[:]) // never fails
	hello.Incarnation = binary.LittleEndian.Uint64(r[:]) | 1
	return &Self{p, m.Sum(nil), hello, sync.OnceValues(TLS)}
}

// proof is what only who has the token can make.
func (s *Self) proof(who string, parts ...[]byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte(who))
	for _, p := range parts {
		m.Write(p)
	}
	return m.Sum(nil)
}

// session is what both ends of a TLS connection, and nobody else, know of it.
func (s *Self) session(rw io.ReadWriter) ([]byte, error) {
	c, ok := rw.(*tls.Conn)
	if !ok {
		return nil, nil
	}
	var plain tls.RecordHeaderError
	if err := c.Handshake(); errors.As(err, &plain) {
		return nil, fmt.Errorf("%w: it does not speak TLS", ErrStranger)
	} else if err != nil {
		return nil, err
	}
	state := c.ConnectionState()
	return state.ExportKeyingMaterial(s.protocol.exporter(), nil, 32)
}

// Dial is the handshake of the end that dialled rank to. It returns what names
// the process there. It fails with ErrStranger or a *Refusal where trying again
// would not help.
func (s *Self) Dial(rw io.ReadWriter, to int) (incarnation uint64, err error) {
	bound, err := s.session(rw)
	if err != nil {
		return 0, err
	}
	h := s.hello
	h.To = uint32(to)
	_, _ = rand.Read(h.Nonce[:])
	first := s.protocol.encode(&h)
	if _, err := rw.Write(first); err != nil {
		return 0, err
	}
	var b [ChallengeBytes]byte
	if _, err := io.ReadFull(rw, b[:]); err != nil {
		return 0, err
	}
	var c challenge
	if err := s.protocol.decode(b[:], &c); err != nil {
		return 0, err
	}
	if c.Verdict != Accepted || c.Version != s.protocol.Version {
		return 0, &Refusal{Verdict: OtherVersion, ours: s.protocol.Version, theirs: c.Version}
	}
	if _, err := rw.Write(s.proof("dialler", first, b[:], bound)); err != nil {
		return 0, err
	}
	var welcome [WelcomeBytes]byte
	if _, err := io.ReadFull(rw, welcome[:]); err != nil {
		return 0, err
	}
	v := Verdict(binary.LittleEndian.Uint32(welcome[:]))
	if v == WrongToken {
		return 0, &Refusal{Verdict: WrongToken} // it cannot prove that it has ours
	}
	if !hmac.Equal(welcome[4:], s.proof("listener", first, b[:], bound, welcome[:4])) {
		return 0, ErrStranger
	}
	if v != Accepted {
		return 0, &Refusal{Verdict: v, encrypts: bound != nil}
	}
	return c.Incarnation, nil
}

// Accept is the handshake of the end that listens. Nothing that the other says is
// used before it has proved that it has the token; then permit, which may refuse
// it still, is asked. A *Refusal comes with what the other said of itself, proved
// or not.
func (s *Self) Accept(rw io.ReadWriter, permit func(*Hello) Verdict) (*Hello, error) {
	bound, err := s.session(rw)
	if err != nil {
		return nil, err
	}
	var first [HelloBytes]byte
	if _, err := io.ReadFull(rw, first[:]); err != nil {
		return nil, err
	}
	h := new(Hello)
	if err := s.protocol.decode(first[:], h); err != nil {
		return nil, err
	}
	c := challenge{Version: s.protocol.Version, Incarnation: s.hello.Incarnation}
	_, _ = rand.Read(c.Nonce[:])
	if h.Version != s.protocol.Version {
		c.Verdict = OtherVersion
	}
	b := s.protocol.encode(&c)
	if _, err := rw.Write(b); err != nil {
		return nil, err
	}
	if c.Verdict != Accepted {
		return h, &Refusal{Verdict: c.Verdict, ours: s.protocol.Version, theirs: h.Version}
	}
	var proof [ProofBytes]byte
	if _, err := io.ReadFull(rw, proof[:]); err != nil {
		return nil, err
	}
	v := WrongToken
	welcome := make([]byte, WelcomeBytes)
	if hmac.Equal(proof[:], s.proof("dialler", first[:], b, bound)) {
		v = permit(h)
		binary.LittleEndian.PutUint32(welcome, uint32(v))
		copy(welcome[4:], s.proof("listener", first[:], b, bound, welcome[:4]))
	} else {
		binary.LittleEndian.PutUint32(welcome, uint32(v))
	}
	if _, err := rw.Write(welcome); err != nil {
		return nil, err
	}
	if v != Accepted {
		return h, &Refusal{Verdict: v, encrypts: bound == nil}
	}
	return h, nil
}

package handshake

import (
	"crypto/sha256"
	"encoding/binary"
)

// Hello is the dialler's first message: what it says of itself, and whom it
// means.
type Hello struct {
	Version     uint16
	Job         [sha256.Size]byte // digest of its name
	From, To    uint32            // ranks
	Size        uint32            // of the job
	Generation  uint32
	Incarnation uint64 // of the process, the same for all its connections; never 0
	nonce       [32]byte
}

func (h *Hello) encode(p Protocol) []byte {
	b := make([]byte, 0, HelloBytes)
	b = binary.LittleEndian.AppendUint64(b, p.Magic)
	b = binary.LittleEndian.AppendUint64(b, uint64(h.Version))
	b = append(b, h.Job[:]...)
	for _, v := range []uint32{h.From, h.To, h.Size, h.Generation} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	b = binary.LittleEndian.AppendUint64(b, h.Incarnation)
	return append(b, h.nonce[:]...)
}

func decodeHello(p Protocol, b []byte) (*Hello, error) {
	if len(b) != HelloBytes || binary.LittleEndian.Uint64(b) != p.Magic {
		return nil, ErrStranger
	}
	h := &Hello{
		Version: binary.LittleEndian.Uint16(b[8:]),
		From:    binary.LittleEndian.Uint32(b[48:]), To: binary.LittleEndian.Uint32(b[52:]),
		Size:        binary.LittleEndian.Uint32(b[56:]),
		Generation:  binary.LittleEndian.Uint32(b[60:]),
		Incarnation: binary.LittleEndian.Uint64(b[64:]),
	}
	copy(h.Job[:], b[16:])
	copy(h.nonce[:], b[72:])
	return h, nil
}

// challenge is the listener's first message.
type challenge struct {
	version     uint16
	verdict     Verdict // OtherVersion, or Accepted for the time being
	incarnation uint64
	nonce       [32]byte
}

func (c *challenge) encode(p Protocol) []byte {
	b := make([]byte, 0, ChallengeBytes)
	b = binary.LittleEndian.AppendUint64(b, p.Magic)
	b = binary.LittleEndian.AppendUint32(b, uint32(c.version))
	b = binary.LittleEndian.AppendUint32(b, uint32(c.verdict))
	b = binary.LittleEndian.AppendUint64(b, c.incarnation)
	return append(b, c.nonce[:]...)
}

func decodeChallenge(p Protocol, b []byte) (c challenge, err error) {
	if len(b) != ChallengeBytes || binary.LittleEndian.Uint64(b) != p.Magic {
		return c, ErrStranger
	}
	c.version = binary.LittleEndian.Uint16(b[8:])
	c.verdict = Verdict(binary.LittleEndian.Uint32(b[12:]))
	c.incarnation = binary.LittleEndian.Uint64(b[16:])
	copy(c.nonce[:], b[24:])
	return c, nil
}

package handshake

import (
	"crypto/sha256"
	"encoding/binary"
)

// Hello is the dialler's first message: what it says of itself, and whom it
// means.
type Hello struct {
	Version     uint16
	_           [6]byte
	Job         [sha256.Size]byte // digest of its name
	From, To    uint32            // ranks
	Size        uint32            // of the job
	Generation  uint32
	Incarnation uint64 // of the process, the same for all its connections; never 0
	Nonce       [32]byte
}

// challenge is the listener's first message.
type challenge struct {
	Version     uint16
	_           [2]byte
	Verdict     Verdict // OtherVersion, or Accepted for the time being
	Incarnation uint64
	Nonce       [32]byte
}

// encode is a message as it travels: what begins all of a protocol, and its fields, little-endian.
func (p Protocol) encode(message any) []byte {
	b, _ := binary.Append(binary.LittleEndian.AppendUint64(nil, p.Magic), binary.LittleEndian, message)
	return b
}

func (p Protocol) decode(b []byte, message any) error {
	if len(b) != 8+binary.Size(message) || binary.LittleEndian.Uint64(b) != p.Magic {
		return ErrStranger
	}
	_, err := binary.Decode(b[8:], binary.LittleEndian, message)
	return err
}

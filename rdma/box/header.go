package box

import (
	"encoding/binary"
	"math"

	"malt/internal/say"
	"malt/rdma"
)

const (
	headerBytes = 64
	slotMagic   = 0x544c414d // "MALT"
)

// Offsets within a slot.
const (
	atMagic      = 0
	atFormat     = 4
	atKind       = 6
	atGeneration = 8
	atMember     = 12
	atSeq        = 16
	atClock      = 24
	atAge        = 32
	atTag        = 40
	atBytes      = 48
	atWeight     = 56
)

// Header is the first 64 bytes of a slot. The sender writes it as the last part
// of filling, before the slot is published; nobody else can.
type Header struct {
	Format     uint16 // of the box: a digest of its Spec, which names dtype and representation
	Generation uint32 // view in which it was sent
	Member     uint32 // the sender's id, never reused, unlike its rank
	Seq        uint64
	Bytes      uint64 // of payload
	rdma.Stamp
}

// Encode writes h to the first 64 bytes of b.
func (h *Header) Encode(b []byte) {
	b = b[:headerBytes]
	binary.LittleEndian.PutUint32(b[atMagic:], slotMagic)
	binary.LittleEndian.PutUint16(b[atFormat:], h.Format)
	binary.LittleEndian.PutUint16(b[atKind:], h.Kind)
	binary.LittleEndian.PutUint32(b[atGeneration:], h.Generation)
	binary.LittleEndian.PutUint32(b[atMember:], h.Member)
	binary.LittleEndian.PutUint64(b[atSeq:], h.Seq)
	binary.LittleEndian.PutUint64(b[atClock:], h.Clock)
	binary.LittleEndian.PutUint64(b[atAge:], h.Age)
	binary.LittleEndian.PutUint64(b[atTag:], h.Tag)
	binary.LittleEndian.PutUint64(b[atBytes:], h.Bytes)
	binary.LittleEndian.PutUint64(b[atWeight:], math.Float64bits(h.Weight))
}

// DecodeHeader reads the first 64 bytes of b once, so that what Check accepts
// cannot change afterwards. It fails when b is shorter or is not a header.
func DecodeHeader(b []byte) (Header, error) {
	if len(b) < headerBytes {
		return Header{}, corrupt("header of %d bytes, expected %d", len(b), headerBytes)
	}
	b = b[:headerBytes]
	if m := binary.LittleEndian.Uint32(b[atMagic:]); m != slotMagic {
		return Header{}, corrupt("magic %#x, expected %#x", m, slotMagic)
	}
	return Header{
		Format:     binary.LittleEndian.Uint16(b[atFormat:]),
		Generation: binary.LittleEndian.Uint32(b[atGeneration:]),
		Member:     binary.LittleEndian.Uint32(b[atMember:]),
		Seq:        binary.LittleEndian.Uint64(b[atSeq:]),
		Bytes:      binary.LittleEndian.Uint64(b[atBytes:]),
		Stamp: rdma.Stamp{
			Clock:  binary.LittleEndian.Uint64(b[atClock:]),
			Age:    binary.LittleEndian.Uint64(b[atAge:]),
			Tag:    binary.LittleEndian.Uint64(b[atTag:]),
			Kind:   binary.LittleEndian.Uint16(b[atKind:]),
			Weight: math.Float64frombits(binary.LittleEndian.Uint64(b[atWeight:])),
		},
	}, nil
}

// Check fails unless h is update seq of the member want.Member, with the format
// of want and no more than want.Bytes of payload. The generation is left to
// lock-step mode, the only one that asks for it.
func (h *Header) Check(seq uint64, want *Header) error {
	switch {
	case h.Seq != seq:
		return corrupt("seq %d, expected %d", h.Seq, seq)
	case h.Member != want.Member:
		return corrupt("seq %d from member %d, expected member %d", seq, h.Member, want.Member)
	case h.Format != want.Format:
		return corrupt("seq %d with format %#x, expected %#x", seq, h.Format, want.Format)
	case h.Bytes > want.Bytes:
		return corrupt("seq %d with %d bytes, the slot has room for %d", seq, h.Bytes, want.Bytes)
	}
	return nil
}

func corrupt(format string, args ...any) error {
	return say.Errorf(rdma.ErrCorrupt, "corrupt update: "+format, args...)
}

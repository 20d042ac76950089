package box

import (
	"bytes"
	"errors"
	"math"
	"testing"
	"testing/quick"

	"malt/rdma"
)

func TestHeaderRoundTrip(t *testing.T) {
	same := func(format, kind uint16, generation, member uint32, seq, n, clock, age, tag uint64, weight float64) bool {
		h := Header{Format: format, Generation: generation, Member: member, Seq: seq, Bytes: n,
			Stamp: rdma.Stamp{Clock: clock, Age: age, Tag: tag, Kind: kind, Weight: weight}}
		b := bytes.Repeat([]byte{0xa5}, headerBytes+8)
		h.Encode(b)
		got, err := DecodeHeader(b)
		return err == nil && got == h && bytes.Equal(b[headerBytes:], bytes.Repeat([]byte{0xa5}, 8))
	}
	if err := quick.Check(same, nil); err != nil {
		t.Error(err)
	}
}

// The bytes are part of the format: other languages and later versions read them.
func TestHeaderBytes(t *testing.T) {
	h := Header{Format: 0x0201, Generation: 0x0c0b0a09, Member: 0x100f0e0d, Seq: 1, Bytes: 2,
		Stamp: rdma.Stamp{Clock: 3, Age: 4, Tag: 5, Kind: 0x0403, Weight: 1}}
	var b [headerBytes]byte
	h.Encode(b[:])
	want := []byte("MALT\x01\x02\x03\x04\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10" +
		"\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00" +
		"\x04\x00\x00\x00\x00\x00\x00\x00\x05\x00\x00\x00\x00\x00\x00\x00" +
		"\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\xf0\x3f")
	if !bytes.Equal(b[:], want) {
		t.Errorf("got\n%x, expected\n%x", b, want)
	}
}

func TestHeaderCheck(t *testing.T) {
	want := Header{Format: 1, Member: 2, Bytes: 100}
	good := Header{Format: 1, Member: 2, Bytes: 100, Seq: 9, Generation: 3}
	if err := good.Check(9, &want); err != nil {
		t.Errorf("a good header: %v", err)
	}
	for what, change := range map[string]func(h *Header){
		"seq":    func(h *Header) { h.Seq = 8 },
		"member": func(h *Header) { h.Member++ },
		"format": func(h *Header) { h.Format++ },
		"length": func(h *Header) { h.Bytes++ },
		"huge":   func(h *Header) { h.Bytes = math.MaxUint64 },
	} {
		h := good
		change(&h)
		if err := h.Check(9, &want); !errors.Is(err, rdma.ErrCorrupt) {
			t.Errorf("another %s: error %v, expected ErrCorrupt", what, err)
		}
	}
}

func FuzzDecodeHeader(f *testing.F) {
	var b [headerBytes]byte
	(&Header{Seq: 1, Bytes: 8}).Encode(b[:])
	f.Add(b[:])
	f.Add(b[:63])
	f.Add([]byte("MALT"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := DecodeHeader(b)
		if err != nil {
			if !errors.Is(err, rdma.ErrCorrupt) || h != (Header{}) {
				t.Fatalf("%+v, %v", h, err)
			}
			return
		}
		var again [headerBytes]byte
		h.Encode(again[:])
		if !bytes.Equal(again[:], b[:headerBytes]) {
			t.Fatalf("%x decodes to %+v, which encodes to %x", b[:headerBytes], h, again)
		}
		_ = h.Check(h.Seq, &Header{Bytes: 8})
	})
}

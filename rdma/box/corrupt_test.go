package box

import (
	"encoding/binary"
	"errors"
	"math"
	"testing"

	"malt/rdma"
)

// Every line of the control block's description is compared.
func TestAttachToAnother(t *testing.T) {
	spec := rdma.Spec{Bytes: 8, About: "float64"}
	for off := offMagic; off <= offSenderRank; off += 8 {
		r := newRig(t, spec, 1)
		r.control[off] ^= 1
		if _, err := NewInbox(r.end(1), 0); !errors.Is(err, rdma.ErrCorrupt) {
			t.Errorf("byte %d of the control block changed: error %v, expected ErrCorrupt", off, err)
		}
	}
	r := newRig(t, spec, 1)
	for what, change := range map[string]func(e *End){
		"a shorter control block": func(e *End) { e.Control = e.Control[:128] },
		"another spec":            func(e *End) { e.Layout, _ = NewLayout(rdma.Spec{Bytes: spec.Bytes, About: "float32"}, 1) },
		"another sender":          func(e *End) { e.Sender = 3 },
		"another member":          func(e *End) { e.Member++ },
		"another generation":      func(e *End) { e.Generation++ },
		"no bell":                 func(e *End) { e.Bell = 0 },
	} {
		e := r.end(1)
		change(&e)
		if _, err := NewInbox(e, 0); err == nil {
			t.Errorf("%s was accepted", what)
		}
	}
	for _, index := range []int{-1, 1} {
		if _, err := NewInbox(r.end(1), index); err == nil {
			t.Errorf("reader %d of 1 was accepted", index)
		}
	}
	for _, ranks := range [][]int{{}, {1, 2}, {-1}} {
		if _, err := NewOutbox(r.end(0), ranks, nil); err == nil {
			t.Errorf("readers %v in a layout for 1 were accepted", ranks)
		}
	}
}

// What a slot or word says is not believed; and the next good update is got.
func TestCorruptUpdate(t *testing.T) {
	slot := func(r *rig) []byte {
		return r.slots[r.out.w.own[0][0]*uint32(r.layout.Stride)-uint32(r.layout.Stride):]
	}
	for what, breakIt := range map[string]func(r *rig){
		"magic":         func(r *rig) { slot(r)[atMagic] ^= 1 },
		"format":        func(r *rig) { slot(r)[atFormat] ^= 1 },
		"member":        func(r *rig) { slot(r)[atMember] ^= 1 },
		"seq":           func(r *rig) { slot(r)[atSeq] ^= 1 },
		"length":        func(r *rig) { slot(r)[atBytes] = 9 },
		"huge length":   func(r *rig) { binary.LittleEndian.PutUint64(slot(r)[atBytes:], math.MaxUint64) },
		"slot number":   func(r *rig) { r.control.latest(0, 0).Store(1<<16 | 3) },
		"slot 65535":    func(r *rig) { r.control.latest(0, 0).Store(math.MaxUint64) },
		"slot not used": func(r *rig) { r.control.latest(0, 0).Store(1<<16 | 2) },
	} {
		r := newRig(t, rdma.Spec{Bytes: 8}, 1)
		r.send(1)
		breakIt(r)
		for range 2 {
			if u, ok, err := r.in[0].Next(); ok || !errors.Is(err, rdma.ErrCorrupt) {
				t.Errorf("%s: %+v, ok %v, error %v; expected ErrCorrupt", what, u, ok, err)
			}
		}
		if p := r.control.pin(0).Load(); p != 0 {
			t.Errorf("%s: slot %d stays pinned", what, p-1)
		}
		r.send(2)
		r.want(0, 2)
	}
}

// Pins and acks of hostile readers cost them their updates, nobody else.
func TestHostileReader(t *testing.T) {
	for _, v := range []uint64{0, 1, 5, 6, 65535, 65536, math.MaxUint64 - 1, math.MaxUint64} {
		for _, s := range []rdma.Spec{{Bytes: 8}, {Bytes: 8, Mode: rdma.ByClock}, {Bytes: 8, Mode: rdma.Queue(2)}} {
			r := newRig(t, s, 2)
			for c := uint64(1); c < 20; c++ {
				r.control.pin(0).Store(v)
				r.control.ack(0).Store(max(v, c))
				r.control.readerBell(0).Store(v)
				r.send(c)
				u := r.want(1, c)
				r.in[1].Release(u.Seq)
			}
		}
	}
}

// A Slot function that has nothing for a number is corruption, not a panic.
func TestSlotMissing(t *testing.T) {
	r := newRig(t, rdma.Spec{Bytes: 8}, 1)
	r.send(1)
	e := r.end(1)
	e.Slot = func(int) []byte { return nil }
	in, err := NewInbox(e, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := in.Next(); ok || !errors.Is(err, rdma.ErrCorrupt) {
		t.Errorf("ok %v, error %v", ok, err)
	}
}

// FuzzBox does what data says in a box whose every shared byte data may change
// in between: neither end panics, leaves its memory, or gives an error that is
// not one of the documented.
func FuzzBox(f *testing.F) {
	f.Add([]byte{0, 1}, uint8(0))
	f.Add([]byte{6, 0, 1, 2, 3, 4, 5, 0, 1, 2}, uint8(1))
	f.Add([]byte{7, 8, 128, 0, 255, 1, 7, 9, 192, 0, 3, 0, 1, 2, 7, 10, 1, 64, 255, 2}, uint8(2))
	f.Add([]byte{0, 0, 7, 8, 80, 0, 255, 1, 2, 5}, uint8(5))
	f.Fuzz(func(t *testing.T, data []byte, shape uint8) {
		readers := 1 + int(shape>>2)%3
		spec := rdma.Spec{Bytes: 24}
		switch shape % 3 {
		case 1:
			spec.Mode = rdma.ByClock
		case 2:
			spec.Mode = rdma.Queue(2)
		}
		r := newRig(t, spec, readers)
		take := func() (b int) {
			if len(data) > 0 {
				b, data = int(data[0]), data[1:]
			}
			return b
		}
		clock := uint64(0)
		check := func(err error) {
			if err != nil && !errors.Is(err, rdma.ErrCorrupt) && !errors.Is(err, rdma.ErrLeft) {
				t.Fatal(err)
			}
		}
		for len(data) > 0 {
			in := r.in[take()%readers]
			var u rdma.Update
			var err error
			switch take() % 8 {
			case 0, 1:
				clock++
				b, err := r.out.Begin()
				check(err)
				if b != nil {
					b[0] = 1
					if err := r.out.Commit(take()%(len(b)+1), rdma.Stamp{Clock: clock}, nil); err != nil {
						t.Fatal(err)
					}
				}
			case 2, 3:
				u, _, err = in.Next()
			case 4:
				if spec.Mode == rdma.ByClock {
					u, _, err = in.At(uint64(take()))
				}
			case 5:
				in.Release(uint64(take()))
			case 6:
				_, err = in.Clock()
				_ = r.out.Acked(1)
				_ = in.Published()
			case 7:
				shared := []byte(r.control)
				if take()%2 == 0 {
					shared = r.slots
				}
				at := (take() | take()<<8) % len(shared)
				for n := take() % 9; n > 0 && at < len(shared); n, at = n-1, at+1 {
					shared[at] = byte(take())
				}
			}
			check(err)
			if len(u.Data) > spec.Bytes || cap(u.Data) != len(u.Data) {
				t.Fatalf("data of %d bytes, capacity %d, in slots of %d", len(u.Data), cap(u.Data), spec.Bytes)
			}
		}
		for _, in := range r.in {
			if err := in.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.out.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

package box

import (
	"math"
	"strings"
	"testing"

	"malt/rdma"
)

func TestLayout(t *testing.T) {
	for _, c := range []struct {
		spec                   rdma.Spec
		readers                int
		slots, stride, control int
	}{
		{rdma.Spec{}, 0, 1, 64, 128},
		{rdma.Spec{Bytes: 1}, 1, 3, 128, 256},
		{rdma.Spec{Bytes: 64}, 7, 15, 128, 128 + 7*128},
		{rdma.Spec{Bytes: 64, Mode: rdma.ByClock}, 7, 22, 128, 128 + 7*128},
		{rdma.Spec{Bytes: 65, Mode: rdma.Queue(4)}, 7, 4, 192, 128 + 7*128 + 128},
		{rdma.Spec{Bytes: 65, Mode: rdma.Queue(100)}, 65, 100, 192, 128 + 65*128 + 1664},
		{rdma.Spec{Bytes: 65536 - 128}, 1, 3, 65536 - 64, 256}, // still small
		{rdma.Spec{Bytes: 65536 - 64}, 1, 3, 65536, 256},
		{rdma.Spec{Bytes: 65536}, 1, 3, 65536 + 4096, 256},
		{rdma.Spec{Bytes: 1, Mode: rdma.Queue(MaxSlots)}, 1, 65535, 128, 256 + 524288},
		{rdma.Spec{Bytes: 1}, 32767, 65535, 128, 128 + 32767*128},
	} {
		l, err := NewLayout(c.spec, c.readers)
		if err != nil {
			t.Errorf("%+v, %d readers: %v", c.spec, c.readers, err)
			continue
		}
		if l.Slots != c.slots || l.Stride != c.stride || l.ControlBytes != c.control || l.SlotBytes() != c.slots*c.stride {
			t.Errorf("%+v, %d readers: %+v; expected %d slots of %d, control block of %d", c.spec, c.readers, l, c.slots, c.stride, c.control)
		}
		if l.ControlBytes%128 != 0 {
			t.Errorf("%+v: control blocks of %d bytes cannot lie one behind the other", c.spec, l.ControlBytes)
		}
	}
}

func TestLayoutRefuses(t *testing.T) {
	for what, c := range map[string]struct {
		spec    rdma.Spec
		readers int
	}{
		"0 or more": {rdma.Spec{Bytes: -1}, 1},
		"depth":     {rdma.Spec{Mode: rdma.Queue(-1)}, 1},
		"-1 reade":  {rdma.Spec{}, -1},
		"65537 sl":  {rdma.Spec{}, 32768},
		"65539 sl":  {rdma.Spec{Mode: rdma.ByClock}, 21846},
		"65536 sl":  {rdma.Spec{Mode: rdma.Queue(MaxSlots + 1)}, 1},
		"address ":  {rdma.Spec{Bytes: math.MaxInt}, 1},
		"1 slots ":  {rdma.Spec{Bytes: math.MaxInt - 64, Mode: rdma.Queue(1)}, 0},
		"at most ":  {rdma.Spec{}, math.MaxInt},
	} {
		if _, err := NewLayout(c.spec, c.readers); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%+v for %d readers: error %v, expected one with %q", c.spec, c.readers, err, what)
		}
	}
}

// Every part of a Spec shows, to people and in the digest.
func TestDescribe(t *testing.T) {
	specs := []rdma.Spec{{}, {Bytes: 1}, {Mode: rdma.Queue(1)}, {Mode: rdma.Queue(2)}, {Mode: rdma.ByClock}, {About: "a"}, {About: "b"}}
	words, digests := map[string]bool{}, map[uint64]bool{}
	for _, s := range specs {
		words[Describe(s)] = true
		digests[digest(s)] = true
	}
	if len(words) != len(specs) || len(digests) != len(specs) {
		t.Errorf("%d specs have %d descriptions %v and %d digests", len(specs), len(words), words, len(digests))
	}
	if got, want := Describe(rdma.Spec{Bytes: 8, Mode: rdma.Queue(2), About: "float64"}), "8 bytes, queue of 2, float64"; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
}

// No two words of a control block share bytes, and none leaves it.
func TestWordsApart(t *testing.T) {
	for _, s := range []rdma.Spec{{Mode: rdma.ByClock}, {Mode: rdma.Queue(3)}} {
		const readers = 70
		r := newRig(t, s, readers)
		c := r.control
		clear(c)
		words := map[string]interface{ Add(uint64) uint64 }{
			"clock": c.clock(), "left": c.left(), "head": c.head(), "bell": c.senderBell(),
		}
		for i := range readers {
			at := string(rune('A' + i))
			words["latest0"+at], words["latest1"+at] = c.latest(i, 0), c.latest(i, 1)
			words["published"+at], words["pin"+at] = c.published(i), c.pin(i)
			words["ack"+at], words["bell"+at] = c.ack(i), c.readerBell(i)
		}
		for slot := range s.Mode.Depth() {
			for i := range r.layout.maskWords() {
				words["mask"+string(rune('0'+10*slot+i))] = c.mask(&r.layout, slot, i)
			}
		}
		for name, w := range words {
			if v := w.Add(1); v != 1 {
				t.Errorf("%+v: %s lies where another word lies", s, name)
			}
		}
	}
}

package processes

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"malt/libmalt"
)

// object is what travels: a vector of some arrays, or a segment. Every element
// of an update tells who sent it and when.
type object struct {
	arrays []libmalt.Array // nil: a segment
	bytes  int             // of the segment
	sparse string          // of a vector of one array, "model" or "gradient"
}

// pickObject is one of so many bytes at most.
func pickObject(rnd *rand.Rand, most int) object {
	bytes := pick(rnd, 4, 16, 64, 1000, 4096-64, 4096, 10_000, 65_536, 70_000, 300_000, 1<<20, 4<<20)
	bytes = min(bytes, most)
	f32 := libmalt.Array{DType: libmalt.Float32, Count: max(bytes/4, 1)}
	f64 := libmalt.Array{DType: libmalt.Float64, Count: max(bytes/8, 1)}
	switch rnd.IntN(10) {
	case 0, 1, 2, 3:
		return object{arrays: []libmalt.Array{f32}}
	case 4, 5:
		return object{arrays: []libmalt.Array{f64}}
	case 6, 7:
		f64.Count = max(f64.Count-2, 0)
		return object{arrays: []libmalt.Array{{DType: libmalt.Float32, Count: 3}, f64, {DType: libmalt.Float32}, {DType: libmalt.Float32, Count: 1}}}
	}
	return object{bytes: max(bytes/8*8, 8)}
}

func (o object) segment() bool { return o.arrays == nil }

// size is the payload of a scatter to all.
func (o object) size() (n int) {
	if o.segment() {
		return o.bytes
	}
	for _, a := range o.arrays {
		n += a.Count * a.DType.Size()
	}
	return n
}

// steps is how many rounds a phase may have, so that large objects do not take
// long.
func (p *plan) steps() int { return max(3, min(p.rounds, p.bytes*5/4/(p.object.size()*p.ranks+1))) }

func (o object) String() string {
	if o.segment() {
		return fmt.Sprintf("segment of %d bytes", o.bytes)
	}
	text := "vector of"
	for _, a := range o.arrays {
		text += fmt.Sprintf(" %s[%d]", a.DType, a.Count)
	}
	if o.sparse != "" {
		text += fmt.Sprintf(" in rows of %d, sparse=%s", o.arrays[0].Row, o.sparse)
	}
	return text
}

// value is what a rank writes into every element for its scatter of that clock.
// Float32 holds it exactly, and the sum of eight.
func value(rank int, clock uint64) float64 { return float64(uint64(rank)<<18 | clock) }

// weight is what that scatter counts in a mean.
func weight(rank int, clock uint64) float64 { return float64(1 + (uint64(rank)+clock)%3) }

// length is how much of a segment that scatter sends.
func (o object) length(rank int, clock uint64) int {
	return int((uint64(rank)*7+clock*13)*8) % (o.bytes + 8) / 8 * 8
}

// held is an object that a rank has made.
type held struct {
	object
	v   *libmalt.Vector // nil for a segment
	s   *libmalt.Object
	seg *libmalt.Segment // nil for a vector
}

// hold makes the object in a world. Collective.
func (o object) hold(ctx context.Context, w *libmalt.World, options string) (*held, error) {
	if o.segment() {
		s, err := w.NewSegment(ctx, o.bytes, "", options)
		if err != nil {
			return nil, err
		}
		return &held{o, nil, &s.Object, s}, nil
	}
	if o.sparse != "" {
		options += " sparse=" + o.sparse
	}
	v, err := w.NewVector(ctx, o.arrays, "", options)
	if err != nil {
		return nil, err
	}
	return &held{o, v, &v.Object, nil}, nil
}

// send fills the object with the value of its next clock and scatters it.
func (h *held) send(ctx context.Context, to []int) error {
	rank, clock := h.s.World().Rank(), h.s.Clock()+1
	h.fill(value(rank, clock))
	if h.segment() {
		_, err := h.seg.Scatter(ctx, h.length(rank, clock), to)
		return err
	}
	_, err := h.v.Scatter(ctx, to, weight(rank, clock))
	return err
}

func (h *held) fill(x float64) {
	if h.segment() {
		fill(h.s.Bytes(), 8, x)
		return
	}
	for i, a := range h.arrays {
		fill(h.v.Array(i), a.DType.Size(), x)
	}
}

// read is the value of all elements of b, an update or the object's own bytes. ok
// is false when there are no elements. It fails if they differ: a torn update.
func (h *held) read(b []byte) (x float64, ok bool, err error) {
	if h.segment() {
		return constant(b, 8)
	}
	at := 0
	for i, a := range h.arrays {
		size := a.DType.Size()
		at = (at + size - 1) / size * size
		if at+a.Count*size > len(b) {
			return 0, false, fmt.Errorf("array %d ends at %d of %d bytes", i, at+a.Count*size, len(b))
		}
		y, some, err := constant(b[at:at+a.Count*size], size)
		switch {
		case err != nil:
			return 0, false, fmt.Errorf("array %d: %w", i, err)
		case some && ok && math.Abs(x-y) > 1e-6*math.Abs(x): // the same, but for what float32 rounds off a mean
			return 0, false, fmt.Errorf("torn: array %d holds %s, one before it %s", i, decoded(y), decoded(x))
		case some:
			x, ok = y, true
		}
		at += a.Count * size
	}
	return x, ok, nil
}

// fill gives every element, of size bytes each, the value x.
func fill(b []byte, size int, x float64) {
	if size == 4 {
		bits := math.Float32bits(float32(x))
		for ; len(b) >= 4; b = b[4:] {
			binary.LittleEndian.PutUint32(b, bits)
		}
		return
	}
	bits := math.Float64bits(x)
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, bits)
	}
}

// constant is the value of all elements of b.
func constant(b []byte, size int) (x float64, ok bool, err error) {
	if len(b) == 0 {
		return 0, false, nil
	}
	at := func(b []byte) float64 {
		if size == 4 {
			return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	x = at(b)
	for i := size; i < len(b); i += size {
		if y := at(b[i:]); y != x {
			return 0, false, fmt.Errorf("torn: element 0 is %s, element %d of %d is %s", decoded(x), i/size, len(b)/size, decoded(y))
		}
	}
	return x, true, nil
}

// decoded says what a value tells.
func decoded(x float64) string {
	if x != math.Trunc(x) || x < 0 || x >= 1<<40 {
		return fmt.Sprintf("%v, which no rank wrote", x)
	}
	return fmt.Sprintf("rank %d clock %d", uint64(x)>>18, uint64(x)&(1<<18-1))
}

// Package narrow writes floats in fewer bytes, to be sent, and keeps what that loses for the
// next time: error feedback (Karimireddy et al., ICML 2019).
package narrow

import (
	"slices"
	"unsafe"

	"malt/internal/say"
)

// Kind is how a float is written.
type Kind uint8

const (
	Exact Kind = iota // as it is
	BF16              // bfloat16: the upper half of a float32
	F16               // float16, of a block's largest value
	Int8              // 254 steps, of a block's largest value
)

var names = []string{Exact: "exact", BF16: "bf16", F16: "f16", Int8: "int8"}

// Names returns the kinds as they are written.
func Names() []string { return slices.Clone(names) }

func (k Kind) String() string { return names[k] }

// Parse is the inverse of String.
func Parse(s string) (Kind, error) {
	if i := slices.Index(names, s); i >= 0 {
		return Kind(i), nil
	}
	return Exact, say.Unknown(nil, "wire", s, names...)
}

// block values have a scale of their own in F16 and Int8, a float32 before them.
const block = 256

// Format writes floats of Wide bytes, 4 or 8, as a Kind.
type Format struct {
	Kind
	Wide int
}

// Bytes is how many bytes so many bytes of floats are written in.
func (f Format) Bytes(wide int) int {
	if f.Kind == Exact {
		return wide
	}
	n := wide / f.Wide
	scales := 4 * ((n + block - 1) / block)
	switch f.Kind {
	case BF16:
		return 2 * n
	case F16:
		return 2*n + scales
	}
	return n + scales
}

// Encode writes values - times*base + rest to dst, and keeps in rest what that has lost.
func (f Format) Encode(dst, values, base, rest []byte, times float64) {
	if f.Wide == 4 {
		encode(f.Kind, dst, floats[float32](values), floats[float32](base), floats[float32](rest), float32(times))
	} else {
		encode(f.Kind, dst, floats[float64](values), floats[float64](base), floats[float64](rest), times)
	}
}

// Decode writes what Encode has written, plus times*base, to dst, which may be base.
func (f Format) Decode(dst, written, base []byte, times float64) {
	if f.Wide == 4 {
		decode(f.Kind, floats[float32](dst), written, floats[float32](base), float32(times))
	} else {
		decode(f.Kind, floats[float64](dst), written, floats[float64](base), times)
	}
}

// floats are the floats that lie in b.
func floats[T float32 | float64](b []byte) []T {
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.SliceData(b))), len(b)/int(unsafe.Sizeof(T(0))))
}

// number returns v if that is finite, and otherwise 0, so that one infinite result does not spoil the next.
func number[T float32 | float64](v T) T {
	if v-v != 0 {
		return 0
	}
	return v
}

func encode[T float32 | float64](k Kind, dst []byte, values, base, rest []T, times T) {
	for len(values) > 0 {
		n := min(block, len(values))
		for i, e := range rest[:n] {
			rest[i] = values[i] - times*number(base[i]) + e
		}
		size := put(k, dst, rest[:n])
		dst, values, base, rest = dst[size:], values[n:], base[n:], rest[n:]
	}
}

func decode[T float32 | float64](k Kind, dst []T, written []byte, base []T, times T) {
	var room [block]T
	for len(dst) > 0 {
		n := min(block, len(dst))
		size := take(k, room[:n], written)
		for i, v := range room[:n] {
			dst[i] = times*number(base[i]) + v
		}
		dst, written, base = dst[n:], written[size:], base[n:]
	}
}

package reduce

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// TestChangeOnEveryPath: every path has the bits of plain arithmetic, at every length and
// misalignment, also where the result is one of the operands, and with numbers that are none.
func TestChangeOnEveryPath(t *testing.T) {
	for _, p := range paths() {
		changeEverywhere(t, p, Float32, func(b []byte) float32 { return math.Float32frombits(binary.NativeEndian.Uint32(b)) })
		changeEverywhere(t, p, Float64, func(b []byte) float64 { return math.Float64frombits(binary.NativeEndian.Uint64(b)) })
	}
}

func changeEverywhere[T float](t *testing.T, p path, dt DType, at func(b []byte) T) {
	t.Helper()
	r := rand.New(rand.NewPCG(3, 4))
	special := []T{T(math.Inf(1)), T(math.NaN()), 0, T(math.Copysign(0, -1))}
	for n := 0; n < 70; n++ {
		for _, weight := range []float64{1, 0.3, 0} {
			operands := make([][]byte, 3) // base, from, to
			for i := range operands {
				shift := r.IntN(8)
				operands[i] = make([]byte, shift+n*dt.Size())[shift:]
				for e := range n {
					x := T(r.NormFloat64())
					if r.IntN(9) == 0 {
						x = special[r.IntN(len(special))]
					}
					if i == 2 && r.IntN(3) == 0 {
						x = at(operands[1][e*dt.Size():]) // stays
					}
					copy(operands[i][e*dt.Size():], unsafe.Slice((*byte)(unsafe.Pointer(&x)), dt.Size()))
				}
			}
			want := make([]T, n)
			for e := range want {
				from, to := at(operands[1][e*dt.Size():]), at(operands[2][e*dt.Size():])
				want[e] = at(operands[0][e*dt.Size():])
				if from != to {
					want[e] += T(T(weight) * T(to-from))
				}
			}
			dst := [][]byte{make([]byte, n*dt.Size()), operands[0], operands[2]}[r.IntN(3)]
			if n > 0 {
				changeOn(p, dt, dst, operands[0], operands[1], operands[2], weight)
			}
			for e, w := range want {
				if got := at(dst[e*dt.Size():]); got != w && (got == got || w == w) {
					t.Fatalf("%v, %v, %d elements, weight %v: element %d is %v, want %v", p, dt, n, weight, e, got, w)
				}
			}
		}
	}
}

// TestChangeOfRuns: a part of an object of two types, with a gap between them.
func TestChangeOfRuns(t *testing.T) {
	runs := []Run{{Float32, 0, 12}, {Float64, 16, 16}}
	one := func(a, b float32, c, d float64) []byte {
		out := make([]byte, 32)
		binary.NativeEndian.PutUint32(out[4:], math.Float32bits(a))
		binary.NativeEndian.PutUint32(out[8:], math.Float32bits(b))
		binary.NativeEndian.PutUint64(out[16:], math.Float64bits(c))
		binary.NativeEndian.PutUint64(out[24:], math.Float64bits(d))
		return out[4:]
	}
	got := one(9, 9, 9, 9)
	Change(runs, 4, got, one(1, 2, 3, 4), one(10, 20, 30, 40), one(11, 22, 33, 44), 2)
	if want := one(3, 6, 9, 12); string(got) != string(want) {
		t.Errorf("%x, want %x", got, want)
	}
}

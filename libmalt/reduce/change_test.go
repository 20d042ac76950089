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
	for n := 1; n < 140; n++ {
		for _, weight := range []float64{1, 0.3, 0} {
			var o changed
			for i := range o {
				shift := r.IntN(8)
				o[i] = make([]byte, shift+n*dt.Size())[shift:]
				for e := range n {
					x := T(r.NormFloat64())
					if r.IntN(9) == 0 {
						x = special[r.IntN(len(special))]
					}
					if i == 3 && r.IntN(3) == 0 {
						x = at(o[2][e*dt.Size():]) // stays
					}
					copy(o[i][e*dt.Size():], unsafe.Slice((*byte)(unsafe.Pointer(&x)), dt.Size()))
				}
			}
			rebase := r.IntN(2) == 0
			want := map[int][]T{0: make([]T, n), 2: make([]T, n), 5: make([]T, n)}
			for e := range n {
				base, from, to := at(o[1][e*dt.Size():]), at(o[2][e*dt.Size():]), at(o[3][e*dt.Size():])
				want[0][e], want[2][e], want[5][e] = base, to, at(o[5][e*dt.Size():])
				if rebase {
					want[2][e] = base
				}
				d := T(0)
				if from != to {
					d = T(T(weight) * T(to-from))
				}
				want[0][e] += d
				want[5][e] += d
			}
			want[4] = want[0]
			o[0] = o[[]int{0, 1, 3}[r.IntN(3)]]
			for _, i := range []int{4, 5} {
				if r.IntN(2) == 0 {
					o[i] = nil
					delete(want, i)
				}
			}
			changeOn(p, dt, &o, weight, rebase)
			for i, values := range want {
				for e, w := range values {
					if got := at(o[i][e*dt.Size():]); (got == got || w == w) && math.Float64bits(float64(got)) != math.Float64bits(float64(w)) {
						t.Fatalf("%v, %v, %d elements, weight %v, rebase %v, operand %d: element %d is %v, want %v", p, dt, n, weight, rebase, i, e, got, w)
					}
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
	o := changed{one(9, 9, 9, 9), one(1, 2, 3, 4), one(10, 20, 30, 40), one(11, 22, 33, 44), nil, one(0, 0, 0, 1)}
	change(runs, 4, o, 2, false)
	for i, want := range map[int][]byte{0: one(3, 6, 9, 12), 2: o[3], 5: one(2, 4, 6, 9)} {
		if string(o[i]) != string(want) {
			t.Errorf("operand %d is %x, want %x", i, o[i], want)
		}
	}
}

// TestTotals: at odd lengths, of several blocks too, the sum, what goes with it, and the array have the bits of plain loops.
func TestTotals(t *testing.T) {
	for _, n := range []int{1, 3, 17, 129, 1023, 1 << 10, 4099} {
		totalsOf[float32](t, Float32, n)
		totalsOf[float64](t, Float64, n)
	}
}

func totalsOf[T float](t *testing.T, dt DType, n int) {
	t.Helper()
	r, weight := rand.New(rand.NewPCG(5, 6)), 0.7
	array, slot, theirs, last, sum := make([]T, n), make([]T, n), make([]T, n), make([]T, n), make([]T, n)
	start, seen := make([]T, n), make([]T, n)
	step := func() {
		for i := range array {
			array[i] += T(r.NormFloat64())
			theirs[i] += T(r.NormFloat64())
		}
	}
	step()
	copy(start, array)
	copy(seen, array)
	runs := []Run{{dt, 0, n * dt.Size()}}
	k := NewTotals(runs, MeanChanges, 3, make([]byte, TotalsBytes(runs)), 1<<10)
	k.Last = raw(make([]T, n))
	k.Renew(raw(array), nil)
	for round := range 3 {
		step()
		k.Add(raw(array), weight, raw(slot))
		for i, x := range array {
			d := T(T(weight*k.Share) * T(x-seen[i]))
			sum[i], last[i], seen[i] = sum[i]+d, last[i]+d, x
		}
		step()
		want := make([]T, n)
		for i, x := range array {
			now := T(start[i]+sum[i]) + theirs[i]
			want[i], seen[i] = now+T(x-seen[i]), now
		}
		k.Apply(raw(array), [][]byte{k.Sum, raw(theirs)})
		for what, pair := range map[string][2][]byte{
			"sum": {k.Sum, raw(sum)}, "last": {k.Last, raw(last)}, "slot": {raw(slot), raw(sum)},
			"shadow": {k.Shadow, raw(seen)}, "array": {raw(array), raw(want)},
		} {
			if string(pair[0]) != string(pair[1]) {
				t.Fatalf("%v, %d elements, round %d: the %s has other bits", dt, n, round, what)
			}
		}
	}
}

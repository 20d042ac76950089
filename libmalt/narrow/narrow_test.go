package narrow

import (
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"
)

// raw is the memory of floats.
func raw[T float32 | float64](v []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v)*int(unsafe.Sizeof(T(0))))
}

// eachKind runs body for the kinds that lose something.
func eachKind(t *testing.T, body func(t *testing.T, k Kind)) {
	for _, k := range []Kind{BF16, F16, Int8} {
		t.Run(k.String(), func(t *testing.T) { body(t, k) })
	}
}

// TestHalves: each float16 and bfloat16 is itself again, and between two of them the nearer one is
// taken, of two equally near ones that with the even end.
func TestHalves(t *testing.T) {
	for h := range uint16(0x3c00) { // from 0 to 1
		a, b := fromF16(h), fromF16(h+1)
		if mid := (a + b) / 2; toF16(a) != h || toF16(-a) != h|0x8000 || toF16(mid) != h+h&1 ||
			toF16(math.Nextafter32(mid, 0)) != h || toF16(math.Nextafter32(mid, 2)) != h+1 {
			t.Fatalf("float16 %#x is %v, which is written as %#x; the middle above it, %v, as %#x", h, a, toF16(a), mid, toF16(mid))
		}
	}
	if got := fromF16(0x0001); got != 0x1p-24 || fromF16(0x3800) != 0.5 || fromF16(0xbc00) != -1 {
		t.Errorf("the smallest float16 is read as %v", got)
	}
	for h := range uint16(0x7f7f) {
		a, b := fromBF16(h), fromBF16(h+1)
		if mid := a/2 + b/2; toBF16(a, true) != h || toBF16(-a, true) != h|0x8000 ||
			h > 0 && (toBF16(mid, true) != h+h&1 || toBF16(math.Nextafter32(mid, 0), true) != h) {
			t.Fatalf("bfloat16 %#x is %v, which is written as %#x", h, a, toBF16(a, true))
		}
	}
}

// TestNothingIsLost: what is decoded, all in all, is what was to be sent but for the last rest,
// which is less than a step.
func TestNothingIsLost(t *testing.T) {
	eachKind(t, nothingIsLost[float32])
	eachKind(t, nothingIsLost[float64])
}

func nothingIsLost[T float32 | float64](t *testing.T, k Kind) {
	step := map[Kind]float64{BF16: 0x1p-8, F16: 0x1p-11, Int8: 1. / 254}[k]
	for _, n := range []int{1, 5, block, 3*block + 7} {
		rnd := rand.New(rand.NewPCG(uint64(n), uint64(k)))
		f := Format{k, int(unsafe.Sizeof(T(0)))}
		values, base, rest, got := make([]T, n), make([]T, n), make([]T, n), make([]T, n)
		sum := make([]float64, n)
		written := make([]byte, f.Bytes(len(raw(values))))
		for round := range 50 {
			most := 0.0
			for i := range values {
				values[i], base[i] = T(rnd.NormFloat64()), T(rnd.NormFloat64())
				sum[i] += float64(values[i]) - 3*float64(base[i])
			}
			f.Encode(written, raw(values), raw(base), raw(rest), 3)
			f.Decode(raw(got), written, raw(base), 0)
			for i := range got {
				sum[i] -= float64(got[i])
				most = max(most, math.Abs(float64(got[i])))
			}
			for i := range got {
				if math.Abs(sum[i]-float64(rest[i])) > 1e-4 || math.Abs(float64(rest[i])) > 1.01*step*most {
					t.Fatalf("%T, %d values, round %d: %v is missing at %d, and kept is %v", T(0), n, round, sum[i], i, rest[i])
				}
			}
		}
	}
}

// TestBytes: what is written fits exactly, in pieces too.
func TestBytes(t *testing.T) {
	for _, k := range []Kind{BF16, F16, Int8} {
		f := Format{k, 4}
		whole, pieces := f.Bytes(4*1000), f.Bytes(4*512)+f.Bytes(4*488)
		if want := map[Kind]int{BF16: 2000, F16: 2016, Int8: 1016}[k]; whole != want || pieces != want {
			t.Errorf("%v: 1,000 floats take %d bytes, in two pieces %d; expected %d", k, whole, pieces, want)
		}
	}
	if got := (Format{Exact, 8}).Bytes(80); got != 80 {
		t.Errorf("80 bytes as they are take %d", got)
	}
}

// TestNoNumbers: NaN and infinities arrive as such, and do not spoil later values. What is too small
// to be sent is kept.
func TestNoNumbers(t *testing.T) {
	eachKind(t, func(t *testing.T, k Kind) {
		f := Format{k, 8}
		for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1), 1e300, -1e300} {
			if k == BF16 && !math.IsNaN(bad) && !math.IsInf(bad, 0) {
				continue // the largest of all is sent, and the difference kept
			}
			base, rest, got := []float64{0, bad * 0}, []float64{0, 0}, []float64{0, 0} // the product is no number either
			written := make([]byte, f.Bytes(16))
			f.Encode(written, raw([]float64{1, bad}), raw(base), raw(rest), 1)
			f.Decode(raw(got), written, raw(base), 1)
			if got[1]-got[1] == 0 || rest[1] != 0 {
				t.Errorf("%v is read as %v, and %v is kept", bad, got[1], rest[1])
			}
			f.Encode(written, raw([]float64{1, 2}), raw(base), raw(rest), 1)
			if f.Decode(raw(got), written, raw(base), 1); math.Abs(got[0]-1) > 0.01 || math.Abs(got[1]-2) > 0.01 {
				t.Errorf("after %v, 1 and 2 are read as %v", bad, got)
			}
		}
		for _, v := range []float64{1e-320, 1e37, -1e37} {
			rest, got := []float64{0}, []float64{0}
			written := make([]byte, f.Bytes(8))
			f.Encode(written, raw([]float64{v}), raw(got), raw(rest), 0)
			if f.Decode(raw(got), written, raw(got), 0); got[0]-got[0] != 0 || math.Abs(v-got[0]-rest[0]) > 1e-9*math.Abs(v) {
				t.Errorf("%v is read as %v, and %v is kept", v, got[0], rest[0])
			}
		}
	})
}

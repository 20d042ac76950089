package reduce

import (
	"bytes"
	"math"
	"testing"
)

// TestFoldNamesTheSource: whichever source has NaN or infinity, at whichever place, each path names
// it, and has the bits that it has without a look: those of the plain kernel without a guard.
func TestFoldNamesTheSource(t *testing.T) {
	for _, dt := range allDTypes {
		for _, odd := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
			for _, k := range []int{2, 3, 8, 9, 17, 70} {
				for _, n := range []int{1, 7, 8, 33, 64, 65, 1023, 2500} {
					for name, weights := range weightings(k) {
						srcs := make([][]byte, k)
						for i := range srcs {
							srcs[i] = numbers(dt, n, float64(i+1))
						}
						for _, place := range []int{0, n / 2, n - 1} {
							source := (place + n) % k
							good := bytes.Clone(srcs[source])
							putNumber(dt, srcs[source], place, odd)
							for _, op := range []Op{Mean, Sum, Min, Max} {
								want, wantBits := source, make([]byte, len(good))
								reads, theirs, count := srcs, weights, k
								if weights != nil && op.Weighted() {
									reads, theirs = weighing(srcs, weights, nil, nil)
									count = len(reads)
								} else {
									theirs = nil
								}
								if len(reads) < 2 {
									continue // a copy, or nothing
								}
								kernel(pathGo, false, op, dt, [][]byte{wantBits}, reads, theirs, count, 0, len(good))
								if op == Min && odd > 0 || op == Max && odd < 0 || op.Weighted() && weights != nil && weights[source] == 0 {
									want = None
								}
								for _, p := range paths() {
									got := make([]byte, len(good))
									if from := foldOn(p, op, dt, [][]byte{got}, srcs, weights); from != want || !bytes.Equal(got, wantBits) {
										t.Fatalf("%v, %v of %d x %d %v, weights %s, %v at %d of source %d: from %d, want %d; same bits: %v",
											p, op, k, n, dt, name, odd, place, source, from, want, bytes.Equal(got, wantBits))
									}
								}
							}
							copy(srcs[source], good)
						}
					}
				}
			}
		}
	}
}

// TestFoldNamesNoSource: not where all have NaN already, nor where the sum is too large.
func TestFoldNamesNoSource(t *testing.T) {
	nan, large := float32(math.NaN()), float32(math.MaxFloat32)
	for _, p := range paths() {
		for name, srcs := range map[string][][]byte{
			"before": {floats(1, nan, 3), floats(4, nan, 6)},
			"sum":    {floats(1, large), floats(1, large)},
		} {
			if from := foldOn(p, Sum, Float32, [][]byte{make([]byte, len(srcs[0]))}, srcs, nil); from != Unknown {
				t.Errorf("%v, %s: from %d, want %d", p, name, from, Unknown)
			}
		}
	}
}

func TestEarlier(t *testing.T) {
	for _, c := range [][3]int{{None, None, None}, {None, 2, 2}, {2, None, 2}, {1, 2, 1}, {Unknown, 2, 2}, {2, Unknown, 2}, {Unknown, None, Unknown}, {None, Unknown, Unknown}} {
		if got := Earlier(c[0], c[1]); got != c[2] {
			t.Errorf("Earlier(%d, %d) = %d, want %d", c[0], c[1], got, c[2])
		}
	}
}

// numbers are n finite ones.
func numbers(dt DType, n int, first float64) []byte {
	b := make([]byte, n*dt.Size())
	for i := range n {
		putNumber(dt, b, i, first+float64(i)/8)
	}
	return b
}

func putNumber(dt DType, b []byte, i int, x float64) {
	if dt == Float32 {
		put(dt, b, i, uint64(math.Float32bits(float32(x))))
	} else {
		put(dt, b, i, math.Float64bits(x))
	}
}

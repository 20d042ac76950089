package spvec

import (
	"math"
	"math/rand/v2"
	"testing"
)

func TestFar(t *testing.T) {
	for _, s := range shapes {
		r := rand.New(rand.NewPCG(1, uint64(s.Rows)))
		rows := some(r, s, 0.5)
		data, base := integers(r, s, some(r, s, 1)), integers(r, s, some(r, s, 1))
		largest, squares := Far(nil, LargestElement, s, data, base, rows), Far(nil, Squares, s, data, base, rows)
		for i, row := range rows {
			most, sum := 0.0, 0.0
			for k := range s.Width {
				d := math.Abs(get(s, data, int(row)*s.Width+k) - get(s, base, int(row)*s.Width+k))
				most, sum = max(most, d), sum+d*d
			}
			if largest[i] != most || squares[i] != sum {
				t.Errorf("%v: row %d is %v and %v away, want %v and %v", s, row, largest[i], squares[i], most, sum)
			}
		}
	}
}

// TestFarWithoutNumbers: a row is infinitely far where the distance of an element is not a number, whatever
// the others are.
func TestFarWithoutNumbers(t *testing.T) {
	s := Shape{Rows: 1, Width: 3, Elem: 8}
	for i, pair := range [][2]float64{{math.NaN(), 1}, {1, math.NaN()}, {math.NaN(), math.NaN()}, {math.Inf(1), 1}, {math.Inf(1), math.Inf(1)}, {math.MaxFloat64, -math.MaxFloat64}} {
		for at := range s.Width {
			data, base := zeroed(s.Bytes()), zeroed(s.Bytes())
			set(s, data, (at+1)%3, 2)
			set(s, data, at, pair[0])
			set(s, base, at, pair[1])
			for _, m := range []Measure{LargestElement, Squares} {
				if far := Far(nil, m, s, data, base, []uint32{0}); !math.IsInf(far[0], 1) {
					t.Errorf("pair %d at %d: %v away, want infinitely far", i, at, far[0])
				}
			}
		}
	}
}

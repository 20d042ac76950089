package spvec

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"malt/libmalt/reduce"
)

// TestFoldAt holds the fold of rows at places against one element by element, to the bit: with signed
// zeros, infinities and what is no number.
func TestFoldAt(t *testing.T) {
	values := []float64{0, math.Copysign(0, -1), 1, -1, 0.1, math.Inf(1), math.Inf(-1), math.NaN(), 1e30}
	for _, op := range []Op{Sum, Mean, Min, Max} {
		for _, s := range []Shape{{5, 1, 4}, {5, 3, 4}, {5, 1, 8}, {5, 4, 8}} {
			t.Run(fmt.Sprintf("%s %v", op, s), func(t *testing.T) {
				draw := rand.New(rand.NewPCG(1, 2))
				put := func(b []byte, i int, x float64) {
					if s.Elem == 4 {
						binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(x)))
					} else {
						binary.LittleEndian.PutUint64(b[8*i:], math.Float64bits(x))
					}
				}
				get := func(b []byte, i int) float64 {
					if s.Elem == 4 {
						return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
					}
					return math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
				}
				for range 50 {
					dst, want := make([]byte, s.Bytes()), make([]byte, s.Bytes())
					Neutral(op, s, dst)
					seen, counts := make([]bool, s.Rows), make([]uint64, s.Rows)
					for range 3 {
						var rows []uint32
						for r := range s.Rows {
							if draw.IntN(2) == 0 {
								rows = append(rows, uint32(r))
							}
						}
						src := make([]byte, len(rows)*s.RowBytes())
						for i, r := range rows {
							for e := range s.Width {
								put(src, i*s.Width+e, values[draw.IntN(len(values))])
								x, at := get(src, i*s.Width+e), int(r)*s.Width+e
								switch {
								case !seen[r]:
								case op == Min:
									x = min(get(want, at), x)
								case op == Max:
									x = max(get(want, at), x)
								default:
									x += get(want, at)
								}
								put(want, at, x)
							}
							seen[r] = true
							counts[r]++
						}
						FoldAt(op, s, dst, src, rows)
					}
					if op == reduce.Mean {
						Divide(s, dst, counts)
					}
					for r := range s.Rows {
						for e := range s.Width {
							x, y := get(dst, r*s.Width+e), get(want, r*s.Width+e)
							if op == reduce.Mean {
								put(want, r*s.Width+e, y/float64(counts[r]))
								y = get(want, r*s.Width+e)
							}
							if seen[r] && math.Float64bits(x) != math.Float64bits(y) && !(math.IsNaN(x) && math.IsNaN(y)) {
								t.Fatalf("row %d, element %d: %v, want %v", r, e, x, y)
							}
						}
					}
				}
			})
		}
	}
}

package spvec

import (
	"math"
	"slices"
)

// Measure says how far a row is from another.
type Measure uint8

const (
	LargestElement Measure = iota // of its differences
	Squares                       // their sum
)

// Far is how far each of these rows of data is from base; infinitely, where that is not a
// number. far is room for them.
func Far(far []float64, m Measure, s Shape, data, base []byte, rows []uint32) []float64 {
	far = slices.Grow(far[:0], len(rows))[:len(rows)]
	if s.Elem == 4 {
		measure(far, m, s.Width, view[float32](data), view[float32](base), rows)
	} else {
		measure(far, m, s.Width, view[float64](data), view[float64](base), rows)
	}
	return far
}

func measure[T float](far []float64, m Measure, width int, data, base []T, rows []uint32) {
	for i, row := range rows {
		x, y := data[int(row)*width:][:width], base[int(row)*width:][:width]
		sum, most := 0.0, 0.0
		for j := range x {
			d := math.Abs(float64(x[j]) - float64(y[j]))
			sum, most = sum+d*d, max(most, d)
		}
		if far[i] = most; m == Squares {
			far[i] = sum
		}
		if math.IsNaN(most) {
			far[i] = math.Inf(1)
		}
	}
}

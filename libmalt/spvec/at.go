package spvec

import "math"

// Neutral fills dst with what FoldAt with op leaves every value as it is.
func Neutral(op Op, s Shape, dst []byte) {
	x := math.Copysign(0, -1) // + 0 is 0, and + -0 is -0
	switch op {
	case Min:
		x = math.Inf(1)
	case Max:
		x = math.Inf(-1)
	}
	if s.Elem == 4 {
		fillWith(view[float32](dst), float32(x))
	} else {
		fillWith(view[float64](dst), x)
	}
}

func fillWith[T float](dst []T, x T) {
	for i := range dst {
		dst[i] = x
	}
}

// FoldAt combines the rows of src, one after the other, with those of dst at rows: their sum, with
// Mean, too, or their Min or Max. dst is aligned to its elements.
func FoldAt(op Op, s Shape, dst, src []byte, rows []uint32) {
	if s.Elem == 4 {
		foldAt(op, s.Width, view[float32](dst), view[float32](src), rows)
	} else {
		foldAt(op, s.Width, view[float64](dst), view[float64](src), rows)
	}
}

func foldAt[T float](op Op, width int, dst, src []T, rows []uint32) {
	if width == 1 && op != Min && op != Max { // five times faster than rows of one element in the loop below
		src = src[:len(rows)]
		for i, row := range rows {
			dst[row] += src[i]
		}
		return
	}
	for i, row := range rows {
		d, x := dst[int(row)*width:][:width], src[i*width:][:width]
		switch op {
		case Min:
			for j := range d {
				d[j] = min(d[j], x[j])
			}
		case Max:
			for j := range d {
				d[j] = max(d[j], x[j])
			}
		default:
			for j := range d {
				d[j] += x[j]
			}
		}
	}
}

// Divide divides the rows of b by these numbers.
func Divide(s Shape, b []byte, by []uint64) {
	if s.Elem == 4 {
		divide(s.Width, view[float32](b), by)
	} else {
		divide(s.Width, view[float64](b), by)
	}
}

func divide[T float](width int, x []T, by []uint64) {
	for i, n := range by {
		for j := range width {
			x[i*width+j] /= T(n)
		}
	}
}

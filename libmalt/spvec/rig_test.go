package spvec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"unsafe"
)

// shapes cover both element types, single elements, rows shorter and longer than
// moved as one value, and no rows.
var shapes = []Shape{
	{0, 1, 4}, {1, 1, 4}, {7, 1, 4}, {100, 1, 4}, {1000, 1, 8}, {50, 3, 4}, {40, 2, 4}, {30, 5, 8}, {9, 100, 4}, {5, 65, 8},
	{30, 4, 4}, {20, 4, 8}, {20, 16, 4}, {7, 300, 4},
}

// long are longer than what is looked at, or folded, at a time, with tails.
var long = []Shape{{2*blockElements + 3, 1, 4}, {blockElements + 1, 1, 8}, {findBytes/4 + 70, 1, 4}, {1000, 17, 4}, {3, blockElements + 1, 4}}

// zeroed is memory aligned to the largest element.
func zeroed(n int) []byte {
	words := make([]uint64, n/8+1)
	return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
}

// integers gives every element a small whole number, 0 where not in rows.
func integers(r *rand.Rand, s Shape, rows []uint32) []byte {
	b := zeroed(s.Bytes())
	for _, row := range rows {
		for i := range s.Width {
			set(s, b, int(row)*s.Width+i, float64(1+r.IntN(9))*[]float64{1, -1}[r.IntN(2)])
		}
	}
	return b
}

func set(s Shape, b []byte, i int, x float64) {
	if s.Elem == 4 {
		view[float32](b)[i] = float32(x)
	} else {
		view[float64](b)[i] = x
	}
}

func get(s Shape, b []byte, i int) float64 {
	if s.Elem == 4 {
		return float64(view[float32](b)[i])
	}
	return view[float64](b)[i]
}

// some picks about that share of the rows, ascending.
func some(r *rand.Rand, s Shape, share float64) (rows []uint32) {
	for row := range s.Rows {
		if r.Float64() < share {
			rows = append(rows, uint32(row))
		}
	}
	return rows
}

func every(s Shape) []uint32 { return some(rand.New(rand.NewPCG(1, 1)), s, 2) }

// message encodes rows of data, in no more room than it takes.
func message(s Shape, data []byte, rows, ages []uint32) ([]byte, Kind) {
	b := zeroed(s.MaxBytes())[:s.Room(len(rows), ages != nil)]
	n, kind := Encode(b, s, data, rows, ages)
	if ages == nil && n != len(b) {
		panic(fmt.Sprintf("%d rows of %v took %d bytes, room was for %d", len(rows), s, n, len(b)))
	}
	return b[:n], kind
}

// mentioned is what an update holds.
func (u *Update) mentioned(s Shape) []uint32 {
	if u.All {
		return every(s)
	}
	return slices.Clone(u.Index)
}

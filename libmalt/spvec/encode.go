package spvec

import (
	"encoding/binary"
	"fmt"
)

// Encode writes rows of data, which ascend, to dst and returns how long that is
// and of which kind. ages are those of the rows; nil: all are 0. dst has
// Shape.MaxBytes.
func Encode(dst []byte, s Shape, data []byte, rows, ages []uint32) (int, Kind) {
	n, size := len(rows), s.RowBytes()
	if n > s.Rows || len(data) != s.Bytes() || ages != nil && len(ages) != n {
		panic(fmt.Sprintf("spvec: %d rows with %d ages of %d bytes in a vector of %d rows and %d bytes", n, len(ages), len(data), s.Rows, s.Bytes()))
	}
	switch {
	case ages == nil && n == s.Rows:
		return copy(dst, data), Dense
	case countBytes+8*n+n*size > s.MaxBytes() && ages != nil:
		return encodeAgedDense(dst, s, data, rows, ages), AgedDense
	}
	at, kind := putList(dst, putCount(dst, n), rows), Rows
	if ages != nil {
		at, kind = putList(dst, at, ages), Aged
	}
	at = roundUp(at)
	values := dst[at : at+n*size]
	switch size {
	case 4:
		pick(view[uint32](values), view[uint32](data), rows)
	case 8:
		pick(view[uint64](values), view[uint64](data), rows)
	default:
		for i, r := range rows {
			copy(values[i*size:(i+1)*size], data[int(r)*size:])
		}
	}
	return at + n*size, kind
}

// EncodeDense writes a whole vector to dst: rows of data and zeros. all says that
// the others of data are zero.
func EncodeDense(dst []byte, s Shape, data []byte, rows []uint32, all bool) int {
	if all {
		return copy(dst, data)
	}
	clear(dst[:s.Bytes()])
	size := s.RowBytes()
	for _, r := range rows {
		at := int(r) * size
		copy(dst[at:at+size], data[at:])
	}
	return s.Bytes()
}

func encodeAgedDense(dst []byte, s Shape, data []byte, rows, ages []uint32) int {
	at := putCount(dst, len(rows))
	list := view[uint32](dst[at : at+4*s.Rows])
	for i := range list {
		list[i] = notMentioned
	}
	for i, r := range rows {
		list[r] = ages[i]
	}
	at = roundUp(at + 4*s.Rows)
	return at + copy(dst[at:], data)
}

func putCount(dst []byte, n int) int {
	binary.NativeEndian.PutUint64(dst, uint64(n))
	return countBytes
}

func putList(dst []byte, at int, list []uint32) int {
	return at + 4*copy(view[uint32](dst[at:at+4*len(list)]), list)
}

// pick copies what rows name.
func pick[T uint32 | uint64](dst, src []T, rows []uint32) {
	for i, r := range rows {
		dst[i] = src[r]
	}
}

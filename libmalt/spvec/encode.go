package spvec

import (
	"encoding/binary"
	"fmt"
)

// Room is the length of a message of n rows; with ages, at most.
func (s Shape) Room(n int, ages bool) int {
	room := s.Bytes()
	switch {
	case ages:
		room = min(s.MaxBytes(), roundUp(countBytes+8*n)+n*s.RowBytes())
	case n < s.Rows:
		room = roundUp(countBytes+4*n) + n*s.RowBytes()
	}
	return room
}

// Encode writes rows of data, which ascend, to dst and returns how long that is
// and of which kind. ages are those of the rows; nil: all are 0. dst has
// Shape.MaxBytes, of which only Shape.Room are touched.
func Encode(dst []byte, s Shape, data []byte, rows, ages []uint32) (int, Kind) {
	n := len(rows)
	if n > s.Rows || len(data) != s.Bytes() || ages != nil && len(ages) != n {
		panic(fmt.Sprintf("spvec: %d rows with %d ages of %d bytes in a vector of %d rows and %d bytes", n, len(ages), len(data), s.Rows, s.Bytes()))
	}
	switch {
	case ages == nil && n == s.Rows:
		return copy(dst, data), Dense
	case countBytes+8*n+n*s.RowBytes() > s.MaxBytes() && ages != nil:
		return encodeAgedDense(dst, s, data, rows, ages), AgedDense
	}
	values, end, kind := encodeLists(dst, s, rows, ages)
	picks.rows(s, values, nil, data, rows)
	return end, kind
}

// EncodeNew is Encode of rows that are all of age 0, and Remember, in one pass
// over the rows.
func EncodeNew(dst []byte, s Shape, data, base []byte, rows []uint32) (int, Kind) {
	if len(rows) == s.Rows {
		copy(base, data)
		return Encode(dst, s, data, rows, nil)
	}
	values, end, kind := encodeLists(dst, s, rows, nil)
	keeps.rows(s, values, base, data, rows)
	return end, kind
}

// encodeLists writes what stands before the values, and returns the room for
// them and where they end.
func encodeLists(dst []byte, s Shape, rows, ages []uint32) (values []byte, end int, kind Kind) {
	at, kind := putList(dst, putCount(dst, len(rows)), rows), Rows
	if ages != nil {
		at, kind = putList(dst, at, ages), Aged
	}
	at = roundUp(at)
	end = at + len(rows)*s.RowBytes()
	return dst[at:end], end, kind
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

package spvec

import (
	"math/bits"

	"malt/libmalt/reduce"
)

// findBytes are compared at a time; what is equal goes by at the speed of memory.
const findBytes = 64 << 10

// Changed appends the rows of data that differ from base, bit by bit, to list.
func Changed(list []uint32, s Shape, data, base []byte) []uint32 {
	return find(list, s, data, base, s.Rows+1)
}

// NonZero appends the rows of data that have a bit set to list. It may stop when
// list has most rows or more.
func NonZero(list []uint32, s Shape, data []byte, most int) []uint32 {
	return find(list, s, data, nil, most)
}

// find appends the rows of data that differ from base, or from zeros where that
// is nil.
func find(list []uint32, s Shape, data, base []byte, most int) []uint32 {
	var room [findBytes / 4 / 64]uint64
	words := s.RowBytes() / 4
	next := 0 // the first word behind the last row found
	for at := 0; at < s.Bytes() && len(list) < most; at += findBytes {
		end := min(at+findBytes, s.Bytes())
		masks := room[:reduce.Masks(end-at)]
		if base == nil {
			reduce.Differ(masks, data[at:end], nil)
		} else {
			reduce.Differ(masks, data[at:end], base[at:end])
		}
		for i, m := range masks {
			if m == 0 {
				continue
			}
			first := at/4 + 64*i // the word that the mask begins with
			if words == 1 {
				for ; m != 0; m &= m - 1 {
					list = append(list, uint32(first+bits.TrailingZeros64(m)))
				}
				continue
			}
			for m = behind(m, next-first); m != 0; m = behind(m, next-first) {
				row := (first + bits.TrailingZeros64(m)) / words
				list = append(list, uint32(row))
				next = (row + 1) * words
			}
		}
	}
	return list
}

// behind is m without its first n bits.
func behind(m uint64, n int) uint64 {
	if n <= 0 {
		return m
	}
	return m >> n << n
}

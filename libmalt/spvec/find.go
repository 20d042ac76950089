package spvec

import "bytes"

// blockBytes are compared at a time: what is equal goes by at the speed of
// memory, what is not is looked at row by row.
const blockBytes = 256

var zeros [blockBytes]byte

// Changed appends the rows of data that differ from base, bit by bit, to list.
func Changed(list []uint32, s Shape, data, base []byte) []uint32 {
	return find(list, s, data, func(at, end int) []byte { return base[at:end] })
}

// NonZero appends the rows of data that have a bit set to list.
func NonZero(list []uint32, s Shape, data []byte) []uint32 {
	return find(list, s, data, func(at, end int) []byte { return zeros[:end-at] })
}

// find appends the rows of data that differ from base, which shows at most
// blockBytes or one row at a time.
func find(list []uint32, s Shape, data []byte, base func(at, end int) []byte) []uint32 {
	size := s.RowBytes()
	if size > blockBytes {
		for row := range s.Rows {
			for at, end := row*size, (row+1)*size; at < end; at += blockBytes {
				if to := min(at+blockBytes, end); !bytes.Equal(data[at:to], base(at, to)) {
					list = append(list, uint32(row))
					break
				}
			}
		}
		return list
	}
	step := blockBytes / size * size
	for at := 0; at < s.Bytes(); at += step {
		end := min(at+step, s.Bytes())
		x, y := data[at:end], base(at, end)
		if bytes.Equal(x, y) {
			continue
		}
		first := uint32(at / size)
		switch size {
		case 4:
			list = differing(list, first, view[uint32](x), view[uint32](y))
		case 8:
			list = differing(list, first, view[uint64](x), view[uint64](y))
		default:
			for i := 0; i < len(x); i += size {
				if !bytes.Equal(x[i:i+size], y[i:i+size]) {
					list = append(list, first+uint32(i/size))
				}
			}
		}
	}
	return list
}

func differing[T uint32 | uint64](list []uint32, first uint32, x, y []T) []uint32 {
	for i := range x {
		if x[i] != y[i] {
			list = append(list, first+uint32(i))
		}
	}
	return list
}

package spvec

import "bytes"

// blockBytes are compared at a time: what is equal goes by at the speed of
// memory, what is not is looked at row by row.
const blockBytes = 256

var zeros [blockBytes]byte

// Changed appends the rows of data that differ from base, bit by bit, to list.
func Changed(list []uint32, s Shape, data, base []byte) []uint32 {
	return find(list, s, data, s.Rows+1, func(at, end int) []byte { return base[at:end] })
}

// Remember copies rows of data to base, which Changed compares it with.
func Remember(s Shape, base, data []byte, rows []uint32) {
	switch size := s.RowBytes(); size {
	case 4:
		x, y := view[uint32](base), view[uint32](data)
		for _, r := range rows {
			x[r] = y[r]
		}
	case 8:
		x, y := view[uint64](base), view[uint64](data)
		for _, r := range rows {
			x[r] = y[r]
		}
	default:
		for _, r := range rows {
			at := int(r) * size
			copy(base[at:at+size], data[at:])
		}
	}
}

// NonZero appends the rows of data that have a bit set to list. It may stop when
// list has most rows or more.
func NonZero(list []uint32, s Shape, data []byte, most int) []uint32 {
	return find(list, s, data, most, func(at, end int) []byte { return zeros[:end-at] })
}

// find appends the rows of data that differ from base, which shows at most
// blockBytes or one row at a time.
func find(list []uint32, s Shape, data []byte, most int, base func(at, end int) []byte) []uint32 {
	size := s.RowBytes()
	if size > blockBytes {
		for row := 0; row < s.Rows && len(list) < most; row++ {
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
	for at := 0; at < s.Bytes() && len(list) < most; at += step {
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

// differing looks at eight rows at a time: most are equal where rows are few.
func differing[T uint32 | uint64](list []uint32, first uint32, x, y []T) []uint32 {
	y = y[:len(x)]
	i := 0
	for ; i+8 <= len(x); i += 8 {
		a, b := x[i:i+8:i+8], y[i:i+8:i+8]
		if (a[0]^b[0])|(a[1]^b[1])|(a[2]^b[2])|(a[3]^b[3])|(a[4]^b[4])|(a[5]^b[5])|(a[6]^b[6])|(a[7]^b[7]) == 0 {
			continue
		}
		for k := range a {
			if a[k] != b[k] {
				list = append(list, first+uint32(i+k))
			}
		}
	}
	for ; i < len(x); i++ {
		if x[i] != y[i] {
			list = append(list, first+uint32(i))
		}
	}
	return list
}

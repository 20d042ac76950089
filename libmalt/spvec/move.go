package spvec

// move is a way to copy rows.
type move uint8

const (
	picks     move = iota // rows of src to dst, one behind the other
	keeps                 // the same, and to these rows of base: each is looked up once
	remembers             // to the same rows of dst
	spreads               // rows of src, one behind the other, to these rows of dst
)

// Pick copies the rows of src that rows name to dst, one behind the other. dst is aligned to its
// elements.
func Pick(s Shape, dst, src []byte, rows []uint32) { picks.rows(s, dst, nil, src, rows) }

// Remember copies rows of data to base, which Changed compares it with. Both are
// aligned to 8 bytes.
func Remember(s Shape, base, data []byte, rows []uint32) { remembers.rows(s, base, nil, data, rows) }

// rows copies rows; short ones as one value each.
func (m move) rows(s Shape, dst, base, src []byte, rows []uint32) {
	switch s.RowBytes() {
	case 4:
		copyShort[uint32](m, dst, base, src, rows)
	case 8:
		copyShort[uint64](m, dst, base, src, rows)
	case 16:
		copyShort[[2]uint64](m, dst, base, src, rows)
	case 32:
		copyShort[[4]uint64](m, dst, base, src, rows)
	case 64:
		copyShort[[8]uint64](m, dst, base, src, rows)
	default:
		copyLong(m, s.RowBytes(), dst, base, src, rows)
	}
}

func copyShort[T short](m move, dst, base, src []byte, rows []uint32) {
	x, z := view[T](dst), view[T](src)
	switch m {
	case picks:
		x = x[:len(rows)]
		for i, r := range rows {
			x[i] = z[r]
		}
	case keeps:
		x, y := x[:len(rows)], view[T](base)[:len(z)]
		for i, r := range rows {
			v := z[r]
			x[i], y[r] = v, v
		}
	case remembers:
		z = z[:len(x)]
		for _, r := range rows {
			x[r] = z[r]
		}
	case spreads:
		z = z[:len(rows)]
		for i, r := range rows {
			x[r] = z[i]
		}
	}
}

func copyLong(m move, size int, dst, base, src []byte, rows []uint32) {
	for i, r := range rows {
		packed, at := i*size, int(r)*size
		switch m {
		case picks, keeps:
			copy(dst[packed:packed+size], src[at:])
			if m == keeps {
				copy(base[at:at+size], src[at:])
			}
		case remembers:
			copy(dst[at:at+size], src[at:])
		case spreads:
			copy(dst[at:at+size], src[packed:])
		}
	}
}

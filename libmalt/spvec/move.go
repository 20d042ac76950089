package spvec

// pick copies the rows of src that rows name to dst, one behind the other.
func pick(s Shape, dst, src []byte, rows []uint32) {
	switch s.RowBytes() {
	case 4:
		pickShort[uint32](dst, src, rows)
	case 8:
		pickShort[uint64](dst, src, rows)
	case 16:
		pickShort[[2]uint64](dst, src, rows)
	case 32:
		pickShort[[4]uint64](dst, src, rows)
	case 64:
		pickShort[[8]uint64](dst, src, rows)
	default:
		size := s.RowBytes()
		for i, r := range rows {
			copy(dst[i*size:(i+1)*size], src[int(r)*size:])
		}
	}
}

func pickShort[T short](dst, src []byte, rows []uint32) {
	x, y := view[T](dst)[:len(rows)], view[T](src)
	for i, r := range rows {
		x[i] = y[r]
	}
}

// pickNew is pick and Remember: each row is looked up once.
func pickNew(s Shape, dst, base, src []byte, rows []uint32) {
	switch s.RowBytes() {
	case 4:
		pickNewShort[uint32](dst, base, src, rows)
	case 8:
		pickNewShort[uint64](dst, base, src, rows)
	case 16:
		pickNewShort[[2]uint64](dst, base, src, rows)
	case 32:
		pickNewShort[[4]uint64](dst, base, src, rows)
	case 64:
		pickNewShort[[8]uint64](dst, base, src, rows)
	default:
		pick(s, dst, src, rows)
		Remember(s, base, src, rows)
	}
}

func pickNewShort[T short](dst, base, src []byte, rows []uint32) {
	x, z := view[T](dst)[:len(rows)], view[T](src)
	y := view[T](base)[:len(z)]
	for i, r := range rows {
		v := z[r]
		x[i], y[r] = v, v
	}
}

// Remember copies rows of data to base, which Changed compares it with. Both are
// aligned to 8 bytes.
func Remember(s Shape, base, data []byte, rows []uint32) {
	switch s.RowBytes() {
	case 4:
		rememberShort[uint32](base, data, rows)
	case 8:
		rememberShort[uint64](base, data, rows)
	case 16:
		rememberShort[[2]uint64](base, data, rows)
	case 32:
		rememberShort[[4]uint64](base, data, rows)
	case 64:
		rememberShort[[8]uint64](base, data, rows)
	default:
		size := s.RowBytes()
		for _, r := range rows {
			at := int(r) * size
			copy(base[at:at+size], data[at:])
		}
	}
}

func rememberShort[T short](base, data []byte, rows []uint32) {
	x := view[T](base)
	y := view[T](data)[:len(x)]
	for _, r := range rows {
		x[r] = y[r]
	}
}

// spread copies the rows of src to those of dst that rows name: the inverse of
// pick. dst is aligned to 8 bytes.
func spread(s Shape, dst, src []byte, rows []uint32) {
	switch s.RowBytes() {
	case 4:
		spreadShort[uint32](dst, src, rows)
	case 8:
		spreadShort[uint64](dst, src, rows)
	case 16:
		spreadShort[[2]uint64](dst, src, rows)
	case 32:
		spreadShort[[4]uint64](dst, src, rows)
	case 64:
		spreadShort[[8]uint64](dst, src, rows)
	default:
		size := s.RowBytes()
		for i, r := range rows {
			copy(dst[int(r)*size:(int(r)+1)*size], src[i*size:])
		}
	}
}

func spreadShort[T short](dst, src []byte, rows []uint32) {
	x, y := view[T](dst), view[T](src)[:len(rows)]
	for i, r := range rows {
		x[r] = y[i]
	}
}

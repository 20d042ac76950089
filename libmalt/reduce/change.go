package reduce

import "unsafe"

// Change writes base + weight · (to − from) to dst, for the n = len(dst) bytes at off of an
// object made of runs. The operands have n bytes each, and dst may be one of them. Each
// of the three operations is rounded to the element type. A value that stays, infinity too, has not changed.
func Change(runs []Run, off int, dst, base, from, to []byte, weight float64) {
	for _, r := range runs {
		lo, hi := max(r.Off, off)-off, min(r.Off+r.Bytes, off+len(dst))-off
		if lo < hi {
			changeOn(pathFor(3*(hi-lo)), r.Type, dst[lo:hi], base[lo:hi], from[lo:hi], to[lo:hi], weight)
		}
	}
}

func changeOn(p path, dt DType, dst, base, from, to []byte, weight float64) {
	observed([][]byte{dst}, [][]byte{base, from, to}, len(dst))
	switch {
	case p != pathGo:
		changeC(p, dt, dst, base, from, to, weight)
	case dt == Float32:
		changeGo[float32](dst, base, from, to, weight)
	default:
		changeGo[float64](dst, base, from, to, weight)
	}
}

// changeGo is the reference, and the path where there are no kernels in C.
func changeGo[T float](dst, base, from, to []byte, weight float64) {
	size, w := int(unsafe.Sizeof(T(0))), T(weight)
	var out, a, b, c [blockElements]T
	for at := 0; at < len(dst); at += blockElements * size {
		end := min(at+blockElements*size, len(dst))
		x, y, z := elements(a[:], base[at:end]), elements(b[:], from[at:end]), elements(c[:], to[at:end])
		for i := range x {
			d := T(0)
			if y[i] != z[i] {
				d = T(w * T(z[i]-y[i]))
			}
			if out[i] = x[i] + d; out[i] != out[i] {
				out[i] = nan[T]()
			}
		}
		copy(dst[at:end], unsafe.Slice((*byte)(unsafe.Pointer(&out[0])), end-at))
	}
}

package reduce

import "unsafe"

// changed are the operands of change, n bytes each: dst, base, from, to, and copy and also, which may be nil.
type changed [6][]byte

// change writes base + weight · (to − from) to dst and copy, and adds the change to also, for the n bytes
// at off of an object made of runs. Then from becomes to, or with rebase what base was. dst may be
// base or to. Each of the three operations is rounded to the element type. A value that stays,
// infinity too, has not changed. to is read once: another thread may be changing it.
func change(runs []Run, off int, o changed, weight float64, rebase bool) {
	for _, r := range runs {
		lo, hi := max(r.Off, off)-off, min(r.Off+r.Bytes, off+len(o[0]))-off
		if lo < hi {
			part := o
			for i, b := range o {
				if b != nil {
					part[i] = b[lo:hi]
				}
			}
			changeOn(pathFor(3*(hi-lo)), r.Type, &part, weight, rebase)
		}
	}
}

func changeOn(p path, dt DType, o *changed, weight float64, rebase bool) {
	observed([][]byte{o[0], o[2], o[4], o[5]}, [][]byte{o[1], o[2], o[3], o[5]}, len(o[0]))
	switch {
	case p != pathGo:
		changeC(p, dt, o, weight, rebase)
	case dt == Float32:
		changeGo[float32](o, weight, rebase)
	default:
		changeGo[float64](o, weight, rebase)
	}
}

// changeGo is the reference, and the path where there are no kernels in C.
func changeGo[T float](o *changed, weight float64, rebase bool) {
	const n = 128 // so small arrays do not pay for large rooms
	size, w := int(unsafe.Sizeof(T(0))), T(weight)
	var rooms [2][n]T
	var now, changes, sums [n]T
	for at := 0; at < len(o[0]); at += n * size {
		end := min(at+n*size, len(o[0]))
		to := now[:(end-at)/size]
		copy(raw(to), o[3][at:end])
		base, from := elements(rooms[0][:], o[1][at:end]), elements(rooms[1][:], o[2][at:end])[:len(to)]
		sum, d := sums[:len(to)], changes[:len(to)]
		for i, x := range base[:len(to)] {
			d[i] = 0
			if from[i] != to[i] {
				d[i] = T(w * T(to[i]-from[i]))
			}
			sum[i] = x + d[i]
		}
		finish(Sum, sum, 1)
		if rebase {
			to = base
		}
		copy(o[2][at:end], raw(to)) // before dst, which may be base
		copy(o[0][at:end], raw(sum))
		if o[4] != nil {
			copy(o[4][at:end], raw(sum))
		}
		if o[5] != nil {
			for i, x := range elements(rooms[0][:], o[5][at:end])[:len(d)] {
				sum[i] = x + d[i]
			}
			finish(Sum, sum, 1)
			copy(o[5][at:end], raw(sum))
		}
	}
}

// raw views x as bytes.
func raw[T float](x []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(T(0))))
}

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
	const n = 64 // so small arrays do not pay for large rooms
	var rooms [len(o)][n]T
	size, w := int(unsafe.Sizeof(T(0))), T(weight)
	for at := 0; at < len(o[0]); at += n * size {
		end := min(at+n*size, len(o[0]))
		var x [len(o)][]T
		for i, b := range o {
			if x[i] = rooms[i][:(end-at)/size]; b != nil {
				copy(raw(x[i]), b[at:end])
			}
		}
		sum, base, from, to, also := x[0], x[1], x[2], x[3], x[5]
		for i := range sum {
			d := T(0)
			if from[i] != to[i] {
				d = T(w * T(to[i]-from[i]))
			}
			sum[i] = base[i] + d
			also[i] += d
		}
		finish(Sum, sum, 1)
		finish(Sum, also, 1)
		if !rebase {
			base = to
		}
		for i, result := range [len(o)][]T{0: sum, 2: base, 4: sum, 5: also} {
			if o[i] != nil {
				copy(o[i][at:end], raw(result))
			}
		}
	}
}

// raw views x as bytes.
func raw[T float](x []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), len(x)*int(unsafe.Sizeof(T(0))))
}

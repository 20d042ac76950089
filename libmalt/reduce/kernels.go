package reduce

import "unsafe"

type float interface{ float32 | float64 }

// blockElements is how many elements are accumulated at a time: 4 KiB of
// float64, and as much for a source that has to be moved, stay in L1.
const blockElements = 512

// foldGo is the reference that the C kernels are held equal to, and the path
// where there are none. Conversions around products keep the compiler from
// fusing them with the addition on CPUs where it would.
func foldGo[T float](op Op, dst []byte, srcs [][]byte, weights []float64) {
	size := int(unsafe.Sizeof(T(0)))
	var acc, room [blockElements]T
	for at := 0; at < len(dst); at += blockElements * size {
		end := min(at+blockElements*size, len(dst))
		out := acc[:(end-at)/size]
		switch {
		case weights != nil:
			weigh(out, room[:], srcs, weights, at, end)
		default:
			copy(out, elements(room[:], srcs[0][at:end]))
			for _, s := range srcs[1:] {
				combine(op, out, elements(room[:], s[at:end]))
			}
			divide(op, out, T(len(srcs)))
		}
		settle(out)
		copy(dst[at:end], unsafe.Slice((*byte)(unsafe.Pointer(&out[0])), end-at))
	}
}

// elements views b as elements, through a copy in room where b is not aligned.
func elements[T float](room []T, b []byte) []T {
	p := unsafe.Pointer(&b[0])
	n := len(b) / int(unsafe.Sizeof(T(0)))
	if uintptr(p)%unsafe.Sizeof(T(0)) == 0 {
		return unsafe.Slice((*T)(p), n)
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&room[0])), len(b)), b)
	return room[:n]
}

// combine puts one more operand into acc.
func combine[T float](op Op, acc, x []T) {
	x = x[:len(acc)]
	switch op {
	case Min:
		for i := range acc {
			acc[i] = min(acc[i], x[i])
		}
	case Max:
		for i := range acc {
			acc[i] = max(acc[i], x[i])
		}
	default:
		for i := range acc {
			acc[i] += x[i]
		}
	}
}

// divide makes a mean of sums of n operands.
func divide[T float](op Op, acc []T, n T) {
	if !op.Weighted() {
		return
	}
	for i := range acc {
		acc[i] /= n
	}
}

// weigh writes the weighted mean of bytes at … end of the sources to out.
func weigh[T float](out, room []T, srcs [][]byte, weights []float64, at, end int) {
	var acc [blockElements]float64
	sum := acc[:len(out)]
	for i, v := range elements(room, srcs[0][at:end]) {
		sum[i] = float64(weights[0] * float64(v))
	}
	for k, s := range srcs[1:] {
		w, x := weights[k+1], elements(room, s[at:end])[:len(sum)]
		for i := range sum {
			sum[i] += float64(w * float64(x[i]))
		}
	}
	w := total(weights)
	for i := range out {
		out[i] = T(sum[i] / w)
	}
}

// total adds the weights up in their order.
func total(weights []float64) (t float64) {
	for _, w := range weights {
		t += w
	}
	return t
}

// settle makes every NaN the same one: which operand's NaN survives an addition
// depends on how the compiler orders it.
func settle[T float](x []T) {
	for i, v := range x {
		if v != v {
			x[i] = nan[T]()
		}
	}
}

// nan is the quiet NaN without sign and payload.
func nan[T float]() T {
	if unsafe.Sizeof(T(0)) == 4 {
		bits := uint32(0x7fc00000)
		return T(*(*float32)(unsafe.Pointer(&bits)))
	}
	bits := uint64(0x7ff8000000000000)
	return T(*(*float64)(unsafe.Pointer(&bits)))
}

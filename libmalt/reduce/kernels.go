package reduce

import "unsafe"

type float interface{ float32 | float64 }

// blockElements is how many elements are accumulated at a time: 4 KiB of
// float64, and as much for a source that has to be moved, stay in L1.
const blockElements = 512

// foldGo is the reference that the C kernels are held equal to, and the path
// where there are none. See kernel. A mean without weights is divided by n. Conversions around
// products keep the compiler from fusing them with the addition on CPUs where it would.
func foldGo[T float](guard bool, op Op, dsts, srcs [][]byte, weights []float64, n, at, bytes int) int {
	size := int(unsafe.Sizeof(T(0)))
	var acc, room [blockElements]T
	for ; at < bytes; at += blockElements * size {
		end := min(at+blockElements*size, bytes)
		out := acc[:(end-at)/size]
		switch {
		case weights != nil:
			weigh(out, room[:], srcs, weights, at, end)
			n = 1
		default:
			copy(out, elements(room[:], srcs[0][at:end]))
			for _, s := range srcs[1:] {
				combine(op, out, elements(room[:], s[at:end]))
			}
		}
		finish(op, out, n)
		if guard {
			for i, v := range out {
				if v-v != 0 {
					end = at + i*size
					break
				}
			}
		}
		for _, dst := range dsts {
			copy(dst[at:end], unsafe.Slice((*byte)(unsafe.Pointer(&out[0])), end-at))
		}
		if end < at+len(out)*size {
			return end
		}
	}
	return bytes
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

// finish makes a mean of sums of n operands, and every NaN the same one: which
// operand's NaN survives an addition depends on how the compiler orders it.
// Where n is a power of two its inverse is exact, and multiplying by it gives the
// bits of the division sooner.
func finish[T float](op Op, x []T, n int) {
	switch {
	case !op.Weighted():
		for i, v := range x {
			if v != v {
				x[i] = nan[T]()
			}
		}
	case n&(n-1) == 0:
		inverse := 1 / T(n)
		for i, v := range x {
			if v *= inverse; v != v {
				v = nan[T]()
			}
			x[i] = v
		}
	default:
		for i, v := range x {
			if v /= T(n); v != v {
				v = nan[T]()
			}
			x[i] = v
		}
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

// nan is the quiet NaN without sign and payload.
func nan[T float]() T {
	if unsafe.Sizeof(T(0)) == 4 {
		bits := uint32(0x7fc00000)
		return T(*(*float32)(unsafe.Pointer(&bits)))
	}
	bits := uint64(0x7ff8000000000000)
	return T(*(*float64)(unsafe.Pointer(&bits)))
}

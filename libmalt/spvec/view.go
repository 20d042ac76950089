package spvec

import "unsafe"

// view shows b as numbers, through a copy where b is not aligned to them: then
// what is written to it does not reach b.
func view[T uint32 | uint64 | float32 | float64](b []byte) []T {
	size := int(unsafe.Sizeof(T(0)))
	n := len(b) / size
	if n == 0 {
		return nil
	}
	p := unsafe.Pointer(&b[0])
	if uintptr(p)%unsafe.Sizeof(T(0)) == 0 {
		return unsafe.Slice((*T)(p), n)
	}
	moved := make([]T, n)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&moved[0])), n*size), b)
	return moved
}

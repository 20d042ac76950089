package spvec

import "unsafe"

// short are rows that are copied as one value each.
type short interface {
	uint32 | uint64 | [2]uint64 | [4]uint64 | [8]uint64
}

// view shows b as numbers, or as rows, through a copy where b is not aligned to
// them: then what is written to it does not reach b.
func view[T short | float32 | float64](b []byte) []T {
	var one T
	size := int(unsafe.Sizeof(one))
	n := len(b) / size
	if n == 0 {
		return nil
	}
	p := unsafe.Pointer(&b[0])
	if uintptr(p)%unsafe.Alignof(one) == 0 {
		return unsafe.Slice((*T)(p), n)
	}
	moved := make([]T, n)
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&moved[0])), n*size), b)
	return moved
}

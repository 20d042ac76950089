package mem

import "unsafe"

// Heap is zeroed memory on the Go heap, aligned to align, a power of two. Unlike
// mapped memory the race detector sees it, and nobody has to give it back.
func Heap(bytes, align int) []byte {
	b := make([]byte, bytes+align-1)
	at := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (align - 1)
	return b[at : at+bytes : at+bytes]
}

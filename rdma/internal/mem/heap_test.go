package mem

import (
	"testing"
	"unsafe"
)

func TestHeap(t *testing.T) {
	for _, align := range []int{8, 64, 4096} {
		for _, n := range []int{0, 1, 63, 64, 4097, 1 << 20} {
			b := Heap(n, align)
			if len(b) != n || cap(b) != n {
				t.Errorf("Heap(%d, %d): length %d, capacity %d", n, align, len(b), cap(b))
			}
			if at := uintptr(unsafe.Pointer(unsafe.SliceData(b))); n > 0 && at%uintptr(align) != 0 {
				t.Errorf("Heap(%d, %d) begins at %#x", n, align, at)
			}
			for i, x := range b {
				if x != 0 {
					t.Fatalf("Heap(%d, %d): byte %d is %d", n, align, i, x)
				}
			}
		}
	}
}

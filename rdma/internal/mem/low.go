package mem

import "unsafe"

// Low is the low half of w: the kernel compares no more, and it is what others
// sleep on who call the kernel themselves.
func Low(w *Word) *uint32 {
	const little = 1
	probe := uint32(little)
	if *(*byte)(unsafe.Pointer(&probe)) == little {
		return (*uint32)(unsafe.Pointer(w))
	}
	return (*uint32)(unsafe.Add(unsafe.Pointer(w), 4))
}

package reduce

import "unsafe"

// observer is told what is moved; nil but in tests.
var observer func(at uintptr, bytes int, written bool)

// Observe has f told, from here on, every operand that Copy and Fold read and
// every result that they write; nil ends that. All that the library moves of dense
// vectors goes through these two, so that tests can count it. f is called from
// whichever goroutine moves; Observe itself not while one does.
func Observe(f func(at uintptr, bytes int, written bool)) { observer = f }

// observed passes addresses on as numbers: nothing escapes through an observer.
func observed(dsts, srcs [][]byte, bytes int) {
	if observer == nil || bytes == 0 {
		return
	}
	for _, s := range srcs {
		observer(uintptr(unsafe.Pointer(&s[0])), bytes, false)
	}
	for _, d := range dsts {
		observer(uintptr(unsafe.Pointer(&d[0])), bytes, true)
	}
}

package reduce

import "unsafe"

// observer is told what is moved; nil but in tests.
var observer func(at uintptr, bytes int, written bool)

// Observe has f told, from here on, every operand that Copy, Fold and Totals read and
// every result that they write; nil ends that. All that the library moves of dense
// vectors goes through these, so that tests can count it. f is called from
// whichever goroutine moves; Observe itself not while one does.
func Observe(f func(at uintptr, bytes int, written bool)) { observer = f }

// observed passes addresses on as numbers: nothing escapes through an observer.
func observed(dsts, srcs [][]byte, bytes int) {
	if observer == nil || bytes == 0 {
		return
	}
	for _, s := range srcs {
		if s != nil {
			observer(uintptr(unsafe.Pointer(&s[0])), bytes, false)
		}
	}
	for _, d := range dsts {
		if d != nil {
			observer(uintptr(unsafe.Pointer(&d[0])), bytes, true)
		}
	}
}

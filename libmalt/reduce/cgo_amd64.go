//go:build cgo

package reduce

// #cgo CFLAGS: -O2 -std=c11 -Wall -Wextra
// #cgo noescape malt_fold
// #cgo nocallback malt_fold
// #cgo noescape malt_change
// #cgo nocallback malt_change
// #cgo noescape malt_differ
// #cgo nocallback malt_differ
// #include "kernels.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// best is the best path of this CPU and operating system.
func best() path {
	if raceDetector {
		return pathGo
	}
	return path(C.malt_best_path())
}

// foldC runs the C kernels.
//
// Addresses go over as numbers, in an array on this goroutine's stack: cgo does
// not let C see Go pointers inside Go memory, and pinning them would cost more
// than a small fold. The numbers stay right because the operands do not move:
// mapped memory never does, the Go heap does not, and hold keeps callers from
// having them on a goroutine's stack, which might. KeepAlive keeps them
// allocated until C is done; C keeps nothing.
func foldC(p path, guard bool, op Op, dt DType, dsts, srcs [][]byte, weights []float64, n, at, bytes int) (done int) {
	var to, from [onStack]C.uintptr_t
	outputs, operands := addresses(to[:0], dsts, at), addresses(from[:0], srcs, at)
	var w *C.double
	sum := float64(n)
	if weights != nil {
		w, sum = (*C.double)(unsafe.Pointer(&weights[0])), total(weights)
	}
	guarded := C.int(0)
	if guard {
		guarded = 1
	}
	done = int(C.malt_fold(C.int(p), C.int(op), C.int(dt), guarded, &outputs[0], C.size_t(len(dsts)),
		&operands[0], w, C.double(sum), C.size_t(len(srcs)), C.size_t(bytes)))
	runtime.KeepAlive(srcs)
	runtime.KeepAlive(dsts)
	return done
}

// addresses appends where byte at of each of list is.
func addresses(to []C.uintptr_t, list [][]byte, at int) []C.uintptr_t {
	for _, b := range list {
		hold(b)
		to = append(to, C.uintptr_t(uintptr(unsafe.Pointer(&b[at]))))
	}
	return to
}

// changeC runs the C kernel; of addresses see foldC.
func changeC(p path, dt DType, o *changed, weight float64, rebase bool) {
	var at [len(o)]C.uintptr_t
	for i, b := range o {
		hold(b)
		at[i] = C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	}
	rebased := C.int(0)
	if rebase {
		rebased = 1
	}
	C.malt_change(C.int(p), C.int(dt), &at[0], C.double(weight), rebased, C.size_t(len(o[0])))
	runtime.KeepAlive(o)
}

// differC fills mask, of which there is one for each 256 bytes of a.
func differC(mask []uint64, a, b []byte) {
	hold(a)
	hold(b)
	C.malt_differ((*C.uint64_t)(unsafe.Pointer(&mask[0])), C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(a)))),
		C.uintptr_t(uintptr(unsafe.Pointer(unsafe.SliceData(b)))), C.size_t(len(mask)))
	runtime.KeepAlive(a)
	runtime.KeepAlive(b)
}

// hold makes the compiler believe that b outlives the call, so that it is never
// placed on a stack. Nothing is stored.
func hold(b []byte) {
	if never {
		held = b
	}
}

var (
	never bool
	held  []byte
)

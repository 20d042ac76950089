//go:build !explore

package mem

import (
	"math"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	futexWait = 0 // FUTEX_WAIT and FUTEX_WAKE without the private flag:
	futexWake = 1 // the word lies in memory of several processes
)

// FutexWait sleeps until FutexWake is called on w, the low half of w is found to
// differ from that of seen, timeout has passed (0: never), or a signal came in.
// The caller looks again whatever the reason.
func FutexWait(w *Word, seen uint64, timeout time.Duration) {
	var at *unix.Timespec
	if timeout > 0 {
		ts := unix.NsecToTimespec(int64(timeout))
		at = &ts
	}
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(Low(w))), futexWait, uintptr(uint32(seen)),
		uintptr(unsafe.Pointer(at)), 0, 0)
}

// FutexWake wakes all who sleep on w.
func FutexWake(w *Word) {
	_, _, _ = unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(Low(w))), futexWake, math.MaxInt32, 0, 0, 0)
}

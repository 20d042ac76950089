//go:build explore

package mem

import (
	"math"
	"time"
	"unsafe"

	"malt/internal/explore"
)

// Word is that of word.go, with every access at the turn of a scheduler.
type Word struct{ v uint64 }

func (w *Word) do(op explore.Op, a, b uint64) uint64 {
	return explore.Access(uintptr(unsafe.Pointer(w)), &w.v, op, a, b)
}

func (w *Word) Load() uint64                { return w.do(explore.Load, 0, 0) }
func (w *Word) Store(v uint64)              { w.do(explore.Store, v, 0) }
func (w *Word) Swap(v uint64) (old uint64)  { return w.do(explore.Swap, v, 0) }
func (w *Word) Add(d uint64) (now uint64)   { return w.do(explore.Add, d, 0) }
func (w *Word) Or(mask uint64) (old uint64) { return w.do(explore.Or, mask, 0) }
func (w *Word) And(mask uint64) (old uint64) {
	return w.do(explore.And, mask, 0)
}
func (w *Word) CompareAndSwap(old, v uint64) bool { return w.do(explore.CompareAndSwap, old, v) != 0 }

// WordAt is the word at byte offset off of b, which must be a multiple of 8.
func WordAt(b []byte, off int) *Word {
	_ = b[off+7]
	return (*Word)(unsafe.Pointer(&b[off]))
}

// FutexWait sleeps until woken: never until a time has passed, so that nothing
// can depend on that.
func FutexWait(w *Word, seen uint64, _ time.Duration) {
	if !explore.Wait(uintptr(unsafe.Pointer(w)), &w.v, seen) {
		panic("mem: under the tag explore only a case's memory can be waited on")
	}
}

// FutexWake wakes all who sleep on w.
func FutexWake(w *Word) { explore.Wake(uintptr(unsafe.Pointer(w)), math.MaxInt32) }

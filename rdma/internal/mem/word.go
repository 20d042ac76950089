//go:build !explore

package mem

import (
	"sync/atomic"
	"unsafe"
)

// Word is a 64-bit word in mapped (or heap) memory that several processes read
// and write. All operations are sequentially consistent, as sync/atomic's are:
// on amd64 Store is an exchange and so a full fence.
//
// Under the build tag "explore" the same methods hand control to a scheduler
// before each access, so that tests can run every interleaving of the code that
// uses them.
type Word struct{ v uint64 }

func (w *Word) Load() uint64                      { return atomic.LoadUint64(&w.v) }
func (w *Word) Store(v uint64)                    { atomic.StoreUint64(&w.v, v) }
func (w *Word) Swap(v uint64) (old uint64)        { return atomic.SwapUint64(&w.v, v) }
func (w *Word) Add(d uint64) (now uint64)         { return atomic.AddUint64(&w.v, d) }
func (w *Word) Or(mask uint64) (old uint64)       { return atomic.OrUint64(&w.v, mask) }
func (w *Word) And(mask uint64) (old uint64)      { return atomic.AndUint64(&w.v, mask) }
func (w *Word) CompareAndSwap(old, v uint64) bool { return atomic.CompareAndSwapUint64(&w.v, old, v) }

// WordAt is the word at byte offset off of b, which must be a multiple of 8 in
// memory that is itself aligned to 8.
func WordAt(b []byte, off int) *Word {
	// Sliced, not read: to the race detector b[off] would be a plain load.
	return (*Word)(unsafe.Pointer(unsafe.SliceData(b[off : off+8 : len(b)])))
}

package mem

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// unchecked is what is populated without a look at the limits, which costs
	// more than so little memory is worth.
	unchecked = 64 << 10

	// wide is from where a claim, while others see it, may leave them without what
	// little they need. One that cannot be met is not shown to them.
	wide = 16 << 20

	// hugeFrom is the size from which huge pages are asked for, as numpy does for
	// its arrays.
	hugeFrom = 4 << 20
)

// Claims keeps processes that reserve memory at the same time from promising
// the same bytes twice. Each has a word that says how much it is about to
// populate; all read all. The order is: store the own claim, look up what is
// free, subtract the claims of the others, populate, take the claim back. Two
// that look at the same moment see each other, so at worst both are refused;
// nobody waits. A claim whose owner is dead or stopped is the caller's to leave
// out of Others, or to bear.
//
// The zero value is a process alone.
type Claims struct {
	Mine   *Word         // written by this process alone; nil: none
	Others func() uint64 // sum of the claims of the others; nil: 0
}

// Map is the function Map under these claims.
func (c *Claims) Map(n int) ([]byte, error) {
	var b []byte
	err := c.claim(n, func() (err error) {
		b, err = mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if n >= hugeFrom && err == nil {
			_ = unix.Madvise(b[:cap(b)], unix.MADV_HUGEPAGE) // a wish: fewer TLB misses in every pass over a model
		}
		return err
	}, func(from, to int) error { return populate(b[from:to:to]) })
	if err != nil && b != nil {
		_ = Unmap(b)
		b = nil
	}
	return b, err
}

// Reserve makes the pages of b, part of a writable mapping, present, so that
// writing them later cannot fault for lack of memory. It fails with a
// *ShortError where they cannot be backed. Contents stay.
func (c *Claims) Reserve(b []byte) error {
	whole := wholePages(b)
	return c.claim(len(whole), nil, func(from, to int) error {
		if len(whole) >= hugeFrom {
			collapse(whole[from:to])
		}
		return populate(whole[from:to])
	})
}

// Reserve is Claims.Reserve for a process alone.
func Reserve(b []byte) error { return new(Claims).Reserve(b) }

// claim asks whether n bytes are free, calls begin, and then work for one step
// after the other with the claim going down.
func (c *Claims) claim(n int, begin func() error, work func(from, to int) error) error {
	if n < 0 {
		return fmt.Errorf("cannot reserve %d bytes", n)
	}
	if n >= wide && c.Mine != nil {
		if err := check(uint64(n), 0); err != nil {
			return err
		}
	}
	if c.Mine != nil {
		// Add, not Store: several goroutines may reserve at once.
		c.Mine.Add(uint64(n))
	}
	left := n
	defer func() {
		if c.Mine != nil {
			c.Mine.Add(-uint64(left))
		}
	}()
	var others uint64
	if c.Others != nil {
		others = c.Others()
	}
	if c.Mine != nil {
		others += c.Mine.Load() - uint64(n) // our other goroutines
	}
	if n > unchecked {
		if err := check(uint64(n), others); err != nil {
			return err
		}
	}
	if begin != nil {
		if err := begin(); err != nil {
			return err
		}
	}
	for at := 0; at < n; at += step {
		to := min(at+step, n)
		if err := work(at, to); err != nil {
			return err
		}
		if c.Mine != nil {
			c.Mine.Add(-uint64(to - at))
		}
		left = n - to
	}
	return nil
}

// wholePages is the part of a mapping that holds b, from page border to page
// border. Mappings are whole pages, so that it never leaves the mapping.
func wholePages(b []byte) []byte {
	if len(b) == 0 {
		return nil
	}
	page := os.Getpagesize()
	before := int(uintptr(unsafe.Pointer(unsafe.SliceData(b))) % uintptr(page))
	first := unsafe.Add(unsafe.Pointer(unsafe.SliceData(b)), -before)
	return unsafe.Slice((*byte)(first), pages(before+len(b)))
}

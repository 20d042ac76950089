package mem

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// step is how much is populated at once. Between two steps a signal can get in
// and the claim of what is still to come is lowered (see Claims).
const step = 32 << 20

// Map returns n bytes of zeroed, page-aligned memory outside the Go heap,
// private to this process: a forked child gets a copy. The memory is there when
// Map returns; where the machine or the control group cannot back it Map fails
// with a *ShortError and has reserved nothing. Unmap gives it back.
func Map(n int) ([]byte, error) { return new(Claims).Map(n) }

// Unmap gives back what Map, File.Map or File.MapForUser returned: that very slice, once.
func Unmap(b []byte) error {
	if cap(b) == 0 {
		return nil
	}
	dropUser(unsafe.SliceData(b))
	if err := unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(cap(b))); err != nil {
		return fmt.Errorf("munmap of %d bytes: %w", cap(b), err)
	}
	return nil
}

// Further maps n bytes more of a File of which b is mapped: those behind b, from the page
// in which its last byte lies. It is a mapping of its own, with the same rights, or for
// reading only; see File.Map.
func Further(b []byte, n int, readOnly bool) ([]byte, error) {
	last := unsafe.Pointer(&b[len(b)-1])
	page := unsafe.Add(last, -int(uintptr(last)%uintptr(os.Getpagesize())))
	size := pages(n)
	p, err := unix.MremapPtr(page, 0, nil, uintptr(size), unix.MREMAP_MAYMOVE) // of no bytes: a second mapping
	if err == unix.ENOMEM {
		return nil, unmappable(n)
	}
	if err != nil {
		return nil, fmt.Errorf("mremap of %d bytes: %w", n, err)
	}
	further := unsafe.Slice((*byte)(p), size)[:n]
	if !readOnly {
		return further, nil
	}
	if err = unix.Mprotect(further[:size], unix.PROT_READ); err == nil {
		err = unix.Madvise(further[:size], unix.MADV_DOFORK)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("protecting %d bytes: %w", n, err), Unmap(further))
	}
	return further, nil
}

// mmap maps n bytes from the page at on, whole pages and at least one. The slice's capacity is what
// was mapped, so that Unmap can tell.
func mmap(fd, at, n, prot, flags int) ([]byte, error) {
	if n < 0 {
		return nil, fmt.Errorf("cannot map %d bytes", n)
	}
	size := pages(n)
	if size < n {
		return nil, &ShortError{Want: uint64(n), Limit: "the address space"}
	}
	p, err := unix.MmapPtr(fd, int64(at), placeFor(fd, at, size), uintptr(size), prot, flags)
	if err == unix.ENOMEM {
		return nil, unmappable(n)
	}
	if err != nil {
		return nil, fmt.Errorf("mmap of %d bytes: %w", n, err)
	}
	return unsafe.Slice((*byte)(p), size)[:n], nil
}

// huge is the size of a huge page.
const huge = 2 << 20

// placeFor is where a large part of a file can have huge pages, which begin at the same multiples in
// memory as in the file; nil: anywhere. It is a wish: another thread may be first.
func placeFor(fd, at, size int) unsafe.Pointer {
	if fd < 0 || size < hugeFrom {
		return nil
	}
	free, err := unix.MmapPtr(-1, 0, nil, uintptr(size+huge), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil
	}
	_ = unix.MunmapPtr(free, uintptr(size+huge))
	return unsafe.Add(free, (at-int(uintptr(free)))&(huge-1))
}

// collapse makes huge pages present in shared memory where the kernel has them, from Linux 6.1 on, in
// an eighth of the time that as many small ones take. It needs one small page of each.
func collapse(b []byte) {
	for at := -int(uintptr(unsafe.Pointer(unsafe.SliceData(b)))) & (huge - 1); at+huge <= len(b); at += huge {
		if populate(b[at:at+os.Getpagesize()]) != nil {
			return
		}
	}
	_ = unix.Madvise(b, unix.MADV_COLLAPSE)
}

// unmappable says why the kernel maps n bytes no more.
func unmappable(n int) error {
	const reserve = 64 // the count changes: other threads map, too
	most, ok := number(os.DirFS("/"), "proc/sys/vm/max_map_count")
	if count := mappings(); ok && count+reserve >= most {
		return &ShortError{Want: uint64(n), Maps: count}
	}
	return &ShortError{Want: uint64(n), Limit: "what the system lets this process map (ulimit -v, vm.overcommit_memory)"}
}

// mappings counts those of this process; 0: unknown. It needs no further memory.
func mappings() (count uint64) {
	f, err := os.Open("/proc/self/maps")
	if err != nil {
		return 0
	}
	defer f.Close()
	var b [4096]byte
	for {
		n, err := f.Read(b[:])
		count += uint64(bytes.Count(b[:n], []byte{'\n'}))
		if err != nil {
			return count
		}
	}
}

// pages is n rounded up to whole pages, at least one; smaller than n where that
// overflows.
func pages(n int) int {
	page := os.Getpagesize()
	return (max(n, 1) + page - 1) / page * page
}

// populate makes the pages of b present and writable without changing them.
// Kernels before 5.14 do not know MADV_POPULATE_WRITE; there every page is
// touched.
func populate(b []byte) error {
	for {
		err := unix.Madvise(b, unix.MADV_POPULATE_WRITE)
		switch err {
		case nil:
			return nil
		case unix.EINTR, unix.EAGAIN:
		case unix.EINVAL:
			for i := 0; i < len(b); i += os.Getpagesize() {
				WordAt(b, i).Or(0)
			}
			return nil
		case unix.ENOMEM, unix.EFAULT:
			return &ShortError{Want: uint64(len(b)), Limit: "what the kernel could find"}
		default:
			return fmt.Errorf("populating %d bytes: %w", len(b), err)
		}
	}
}

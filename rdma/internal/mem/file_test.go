package mem

import (
	"fmt"
	"os"
	"runtime/debug"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// received is a second descriptor of f, as another process would get it.
func received(t *testing.T, f *File) int {
	t.Helper()
	fd, err := unix.FcntlInt(uintptr(f.Fd()), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func TestFileIsSharedAndSealed(t *testing.T) {
	const size = 3*4096 + 7
	f, err := NewFile("malt-test", size)
	if err != nil {
		t.Fatal(err)
	}
	ours, err := f.Map(true)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(ours)
	if err := f.Seal(); err != nil {
		t.Fatal(err)
	}
	g, err := OpenFile(received(t, f), size)
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	f.Close() // does no harm
	theirs, err := g.Map(false)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(theirs)

	if err := Reserve(ours[4096 : 2*4096]); err != nil {
		t.Errorf("Reserve after sealing: %v", err)
	}
	ours[0], ours[size-1] = 1, 2
	if theirs[0] != 1 || theirs[size-1] != 2 || len(theirs) != size {
		t.Error("the other mapping does not show what was written")
	}
	if b, err := g.Map(true); err == nil {
		Unmap(b)
		t.Error("a reader could map a sealed file for writing")
	}
	if _, err := unix.Pwrite(g.Fd(), []byte{9}, 0); err != unix.EPERM {
		t.Errorf("writing to a sealed file: %v, expected EPERM", err)
	}
	if err := unix.Ftruncate(g.Fd(), 0); err != unix.EPERM {
		t.Errorf("shrinking a sealed file: %v, expected EPERM", err)
	}
	if err := unix.Mprotect(theirs[:cap(theirs)], unix.PROT_READ|unix.PROT_WRITE); err == nil {
		t.Error("a reader could make its mapping writable")
	}
	g.Close()
}

func TestWritingAReadOnlyMappingFaults(t *testing.T) {
	f, err := NewFile("malt-test", 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := f.Map(false)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(b)
	faults(t, b)
}

// faults holds that b cannot be written.
func faults(t *testing.T, b []byte) {
	t.Helper()
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if recover() == nil {
			t.Error("writing to a read-only mapping did not fault")
		}
	}()
	b[0] = 1
}

func TestOpenFileRefusesWhatDoesNotFit(t *testing.T) {
	f, err := NewFile("malt-test", 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	unsealed, err := unix.MemfdCreate("malt-test", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err == nil {
		err = unix.Ftruncate(unsealed, 4096)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFile(unsealed, 4096); err == nil || !strings.Contains(err.Error(), "not sealed") {
		t.Errorf("unsealed: %v", err)
	}
	if _, err := OpenFile(received(t, f), 4097); err == nil || !strings.Contains(err.Error(), "expected 8192") {
		t.Errorf("wrong size: %v", err)
	}
	if _, err := OpenFile(received(t, f), -1); err == nil {
		t.Error("negative size accepted")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	fd, _ := unix.FcntlInt(r.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if _, err := OpenFile(fd, 0); err == nil {
		t.Error("a pipe was taken for memory")
	}
	if _, err := OpenFile(99999, 0); err == nil {
		t.Error("a descriptor that is not open was accepted")
	}
	if _, err := NewFile("malt-test", -1); err == nil {
		t.Error("a negative size was accepted")
	}
}

// A File grows while others have it open and mapped, and all of it can be mapped from any of
// its descriptors, and from a mapping of its beginning.
func TestFileGrows(t *testing.T) {
	f, err := NewFile("malt-test", 100)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	fd := received(t, f)
	again, err := f.Again()
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if at, err := again.Grow(5000); at != 4096 || err != nil || again.Size() != 9096 || f.Size() != 100 {
		t.Fatal(at, err, again.Size(), f.Size())
	}
	if at, err := f.Grow(1); at != 3*4096 || err != nil {
		t.Errorf("once more: at %d, %v", at, err)
	}
	if at, err := f.Grow(-1); err == nil {
		t.Error("a File became shorter, at", at)
	}
	g, err := OpenFile(fd, 9096)
	if err != nil {
		t.Fatal("a File that has grown: ", err)
	}
	defer g.Close()
	ids := map[ID]bool{}
	for _, x := range []*File{f, again, g} {
		id, err := x.ID()
		if err != nil {
			t.Fatal(err)
		}
		ids[id] = true
	}
	if len(ids) != 1 {
		t.Errorf("one File has the ids %v", ids)
	}
	first, err := g.MapFrom(true, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(first)
	writable, err := Further(first, 3*4096, false)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(writable)
	readOnly, err := Further(first, 3*4096, true)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(readOnly)
	writable[9000] = 7
	if readOnly[9000] != 7 {
		t.Error("the mappings are not of the same bytes")
	}
	faults(t, readOnly)
}

// tracked tells whether the table for the fork handler holds fd.
func tracked(fd int) bool {
	d := Descriptors()
	for i := range d {
		if d[i].Load() == int32(fd)+1 {
			return true
		}
	}
	return false
}

func TestDescriptorsAreTracked(t *testing.T) {
	f, err := NewFile("malt-test", 1)
	if err != nil {
		t.Fatal(err)
	}
	fd := f.Fd()
	if !tracked(fd) {
		t.Error("an open descriptor is not in the table")
	}
	if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
		t.Errorf("descriptor flags %#x, %v: expected FD_CLOEXEC", flags, err)
	}
	f.Close()
	if tracked(fd) {
		t.Error("a closed descriptor is still in the table")
	}
	Track(7777)
	if !tracked(7777) {
		t.Error("Track had no effect")
	}
	Untrack(7777)
	if tracked(7777) {
		t.Error("Untrack had no effect")
	}
}

func TestWholePages(t *testing.T) {
	b, err := Map(5 * 4096)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(b)
	for _, c := range [][4]int{{0, 1, 0, 4096}, {4095, 4097, 0, 8192}, {4096, 8192, 4096, 8192}, {5000, 20000, 4096, 20480}} {
		w := wholePages(b[c[0]:c[1]])
		if &w[0] != &b[c[2]] || len(w) != c[3]-c[2] {
			t.Errorf("pages of [%d:%d] are %d bytes, expected [%d:%d]", c[0], c[1], len(w), c[2], c[3])
		}
	}
	if wholePages(nil) != nil || Reserve(nil) != nil {
		t.Error("nothing has pages")
	}
}

// TestLargeFilesHaveHugePages reserves files until one has huge pages: the kernel may not find
// memory for one, or another thread may take the place where it can be mapped so.
func TestLargeFilesHaveHugePages(t *testing.T) {
	if err := placed(t); err == unix.EINVAL {
		t.Skip("this kernel has no huge pages for shared memory")
	}
	const size = 4*huge + 4096
	for range 20 {
		b := mapped(t, size)
		b[0], b[size-1] = 1, 2
		if err := Reserve(b); err != nil {
			t.Fatal(err)
		}
		if b[0] != 1 || b[huge] != 0 || b[size-1] != 2 {
			t.Fatal("Reserve has changed what was there")
		}
		if hugeBytes(t, b) == 4*huge {
			return
		}
	}
	t.Error("no file has huge pages, and the kernel gives them")
}

// mapped is a new File of so many bytes, until the test ends.
func mapped(t *testing.T, size int) []byte {
	t.Helper()
	f, err := NewFile("malt-test", size)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := f.Map(true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { Unmap(b) })
	return b
}

// placed asks the kernel for a huge page of shared memory, where one can be.
func placed(t *testing.T) error {
	t.Helper()
	around := mapped(t, 2*huge)
	at := unsafe.Add(unsafe.Pointer(&around[0]), -int(uintptr(unsafe.Pointer(&around[0])))&(huge-1))
	_, err := unix.MmapPtr(-1, 0, at, huge, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_ANONYMOUS|unix.MAP_FIXED)
	if err != nil {
		t.Fatal(err)
	}
	b := unsafe.Slice((*byte)(at), huge)
	b[0] = 1
	return unix.Madvise(b, unix.MADV_COLLAPSE)
}

// hugeBytes is how much of a mapping of a File this process sees by huge pages.
func hugeBytes(t *testing.T, b []byte) (n int) {
	t.Helper()
	smaps, err := os.ReadFile("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	_, from, there := strings.Cut(string(smaps), fmt.Sprintf("%x-", uintptr(unsafe.Pointer(unsafe.SliceData(b)))))
	_, from, has := strings.Cut(from, "ShmemPmdMapped:")
	if there && has {
		_, _ = fmt.Sscan(from, &n)
	}
	return n << 10
}

package mem

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// File is memory that several processes can map, without a name in any file
// system (memfd): it is gone with the last descriptor and mapping, however the
// processes end. It never becomes smaller, so no access to what is mapped of it can fault.
type File struct{ fd, size int }

// NewFile makes a File of size bytes, zeroed. No memory is taken until it is
// written or reserved. name is for /proc/self/maps only.
func NewFile(name string, size int) (*File, error) {
	if size < 0 || pages(size) < size {
		return nil, fmt.Errorf("a file of %d bytes", size)
	}
	const flags = unix.MFD_CLOEXEC | unix.MFD_ALLOW_SEALING
	fd, err := unix.MemfdCreate(name, flags|unix.MFD_NOEXEC_SEAL)
	if err == unix.EINVAL { // before Linux 6.3, which may insist on it
		fd, err = unix.MemfdCreate(name, flags)
	}
	if err != nil {
		return nil, fmt.Errorf("memfd_create %s: %w", name, err)
	}
	track(fd)
	f := &File{fd, size}
	if err := unix.Ftruncate(fd, int64(pages(size))); err != nil {
		f.Close()
		return nil, fmt.Errorf("sizing %s to %d bytes: %w", name, size, err)
	}
	if err := f.seal(unix.F_SEAL_SHRINK); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// OpenFile takes over a descriptor that another process sent, which must be of
// a File of size bytes, or of one that has grown since: sealed against shrinking. On
// failure it closes fd.
func OpenFile(fd, size int) (*File, error) {
	track(fd)
	f := &File{fd, size}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		f.Close()
		return nil, fmt.Errorf("received descriptor: %w", err)
	}
	if size < 0 || st.Size < int64(pages(size)) {
		f.Close()
		return nil, fmt.Errorf("received memory of %d bytes, expected %d or more", st.Size, pages(size))
	}
	seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
	if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
		f.Close()
		return nil, fmt.Errorf("received memory is not sealed against shrinking (seals %#x, %v)", seals, err)
	}
	return f, nil
}

// Again is the same File with another descriptor.
func (f *File) Again() (*File, error) {
	fd, err := unix.FcntlInt(uintptr(f.fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	track(fd)
	return &File{fd, f.size}, nil
}

// Grow puts n bytes more behind the File, zeroed, from the border of a page, which it returns.
// One caller at a time grows a File.
func (f *File) Grow(n int) (at int, err error) {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return 0, fmt.Errorf("growing by %d bytes: %w", n, err)
	}
	at = int(st.Size)
	if size := pages(at + n); n < 0 || size < at {
		return 0, fmt.Errorf("a file of %d and %d bytes", at, n)
	} else if err := unix.Ftruncate(f.fd, int64(size)); err != nil {
		return 0, fmt.Errorf("growing from %d to %d bytes: %w", at, size, err)
	}
	f.size = at + n
	return at, nil
}

// ID tells Files apart, as long as they are open or mapped.
type ID struct{ device, inode uint64 }

// ID is the same for all descriptors of the File.
func (f *File) ID() (ID, error) {
	var st unix.Stat_t
	if err := unix.Fstat(f.fd, &st); err != nil {
		return ID{}, os.NewSyscallError("fstat", err)
	}
	return ID{st.Dev, st.Ino}, nil
}

// Size is the number of bytes asked for.
func (f *File) Size() int { return f.size }

// Fd is the descriptor, to be sent to another process; the File keeps it.
func (f *File) Fd() int { return f.fd }

// Map maps the whole File. A forked child does not inherit a writable mapping: it
// could write where only this process may. One for reading it does: user code may
// hold arrays over it. The mapping outlives the File.
func (f *File) Map(writable bool) ([]byte, error) { return f.MapFrom(writable, 0, f.size) }

// MapFrom maps n bytes that begin at a page of the File, at byte at; see Map.
func (f *File) MapFrom(writable bool, at, n int) ([]byte, error) {
	b, err := f.mmap(writable, at, n)
	if err != nil || !writable {
		return b, err
	}
	if err := unix.Madvise(b[:cap(b)], unix.MADV_DONTFORK); err != nil {
		_ = Unmap(b)
		if err == unix.ENOMEM {
			return nil, unmappable(n)
		}
		return nil, fmt.Errorf("madvise(DONTFORK): %w", err)
	}
	return b, nil
}

func (f *File) mmap(writable bool, at, n int) ([]byte, error) {
	prot := unix.PROT_READ
	if writable {
		prot |= unix.PROT_WRITE
	}
	return mmap(f.fd, at, n, prot, unix.MAP_SHARED|unix.MAP_NORESERVE)
}

// Seal has nobody map it for writing any more, nor write to it, nor change its size;
// mappings that exist stay writable.
func (f *File) Seal() error {
	return f.seal(unix.F_SEAL_GROW | unix.F_SEAL_SEAL | unix.F_SEAL_FUTURE_WRITE)
}

func (f *File) seal(seals int) error {
	if _, err := unix.FcntlInt(uintptr(f.fd), unix.F_ADD_SEALS, seals); err != nil {
		return fmt.Errorf("sealing: %w", os.NewSyscallError("fcntl", err))
	}
	return nil
}

// Close gives up the descriptor. Closing twice does no harm.
func (f *File) Close() error {
	if f.fd < 0 {
		return nil
	}
	fd := f.fd
	f.fd = -1
	untrack(fd)
	return unix.Close(fd)
}

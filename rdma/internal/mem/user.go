package mem

import (
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// UserMapping is shared memory that user code holds. A forked child inherits it, since
// touching it there must not be a fault, and makes it private before anything else
// runs (capi/process.c): what the child writes must not reach the model of its parent.
// The table of them holds no pointers and does not move, so C may read it at any
// time, also between fork and exec, where no lock may be taken: Bytes is set last
// and cleared first.
type UserMapping struct {
	Address atomic.Uintptr
	Bytes   atomic.Uintptr // 0: no mapping
	// Of the memory, + 1, which the child maps anew; 0: it makes a copy.
	Descriptor atomic.Int32
}

const (
	mostUserMappings = 1 << 16
	// A copy of less than this costs a child little; and the descriptors of more are
	// kept for so many only, since a process may have a few hundred.
	copiedByChild   = 1 << 20
	descriptorsKept = 256
)

var users = struct {
	sync.Mutex
	table [mostUserMappings]UserMapping
	used  atomic.Uintptr // entries that have been in use
	free  []int          // of them, those that are not
	at    map[*byte]int  // by the first byte
	kept  int            // descriptors
}{at: map[*byte]int{}}

// UserMappings is that table, for the fork handler, and how much of it to look at.
func UserMappings() ([]UserMapping, *atomic.Uintptr) { return users.table[:], &users.used }

// MapForUser is Map for writing of memory that user code holds, n bytes from the start.
// Unmap gives it back.
func (f *File) MapForUser(n int) ([]byte, error) {
	b, err := f.mmap(true, 0, n)
	if err != nil {
		return nil, err
	}
	i := takeUser()
	if i < 0 {
		_ = Unmap(b)
		return nil, fmt.Errorf("%d arrays that other ranks write into: the limit is reached", mostUserMappings)
	}
	users.Lock()
	defer users.Unlock()
	m := &users.table[i]
	if len(b) >= copiedByChild && users.kept < descriptorsKept {
		if fd, err := unix.FcntlInt(uintptr(f.fd), unix.F_DUPFD_CLOEXEC, 0); err == nil {
			track(fd)
			m.Descriptor.Store(int32(fd) + 1)
			users.kept++
		}
	}
	users.at[unsafe.SliceData(b)] = i
	m.Address.Store(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	m.Bytes.Store(uintptr(cap(b)))
	return b, nil
}

// takeUser finds a free entry; -1: there is none.
func takeUser() int {
	users.Lock()
	defer users.Unlock()
	if n := len(users.free); n > 0 {
		i := users.free[n-1]
		users.free = users.free[:n-1]
		return i
	}
	if users.used.Load() == mostUserMappings {
		return -1
	}
	return int(users.used.Add(1)) - 1
}

// dropUser takes the mapping that begins at first out of the table, if it is there.
func dropUser(first *byte) {
	users.Lock()
	defer users.Unlock()
	i, there := users.at[first]
	if !there {
		return
	}
	m := &users.table[i]
	m.Bytes.Store(0)
	if fd := int(m.Descriptor.Swap(0)) - 1; fd >= 0 {
		untrack(fd)
		_ = unix.Close(fd)
		users.kept--
	}
	delete(users.at, first)
	users.free = append(users.free, i)
}

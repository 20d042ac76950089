package mem

import (
	"math"
	"sync/atomic"
	"syscall"
)

// descriptors lists the open descriptors of this process that a forked child
// must close: a child that kept a rank's socket would hold its name, and one
// that kept its memory would hold that. An entry is the descriptor + 1; 0 is
// free. The array holds no pointers and a Go variable does not move, so C may
// read it at any time, also between fork and exec, where no lock may be taken:
// an entry is set after its descriptor was opened and cleared before it is
// closed, so that what the child closes is never somebody else's.
var descriptors [4096]atomic.Int32

// Descriptors is that table, for the fork handler. Descriptors beyond its
// length, and one that another thread was opening during the fork, stay open in
// the child.
func Descriptors() []atomic.Int32 { return descriptors[:] }

// Track enters a descriptor that was made elsewhere (a socket).
func Track(fd int) { track(fd) }

// Untrack takes it out; call it before closing.
func Untrack(fd int) { untrack(fd) }

func track(fd int) {
	for i := range descriptors {
		if descriptors[i].CompareAndSwap(0, int32(fd)+1) {
			return
		}
	}
}

func untrack(fd int) {
	for i := range descriptors {
		if descriptors[i].CompareAndSwap(int32(fd)+1, 0) {
			return
		}
	}
}

// TrackSocket enters the descriptor of a socket of package net, or takes it out.
func TrackSocket(s any, enter bool) {
	c, ok := s.(syscall.Conn)
	if !ok {
		return
	}
	rc, err := c.SyscallConn()
	if err != nil {
		return
	}
	_ = rc.Control(func(fd uintptr) {
		if enter {
			track(int(fd))
		} else {
			untrack(int(fd))
		}
	})
}

// MostDescriptors is how many this process may have.
func MostDescriptors() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return len(descriptors)
	}
	return int(min(limit.Cur, math.MaxInt32))
}

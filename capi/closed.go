package main

/*
#include "malt_internal.h"
*/
import "C"

import (
	"strings"
	"syscall"
	"unsafe"
)

// overrideWrite is what the runtime writes with: its last words, and the byte that wakes
// a thread that sleeps in epoll_wait. Go keeps it for packages such as this one.
//
//go:linkname overrideWrite runtime.overrideWrite
var overrideWrite func(fd uintptr, p unsafe.Pointer, n int32) int32

// The runtime begins so when it ends the process because the program has closed its
// epoll descriptor, or its eventfd (runtime/netpoll_epoll.go).
const (
	noPoller = "runtime: epollwait on fd"
	noWaker  = "runtime: netpollBreak write failed with"
)

var lastWords = C.GoString(C.maltc_last_words())

func init() { overrideWrite = write }

// write ends the process with the cause and what to do, in place of the runtime's trace
// of all goroutines. It may run on any stack and while the runtime is dying: it does not
// allocate, and calls the kernel by itself.
//
//go:nosplit
func write(fd uintptr, p unsafe.Pointer, n int32) int32 {
	if said := unsafe.String((*byte)(p), n); strings.HasPrefix(said, noPoller) || strings.HasPrefix(said, noWaker) {
		syscall.RawSyscall(syscall.SYS_WRITE, 2, uintptr(unsafe.Pointer(unsafe.StringData(lastWords))), uintptr(len(lastWords)))
		syscall.RawSyscall(syscall.SYS_EXIT_GROUP, 1, 0, 0)
	}
	written, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, fd, uintptr(p), uintptr(n))
	if errno != 0 {
		return -int32(errno)
	}
	return int32(written)
}

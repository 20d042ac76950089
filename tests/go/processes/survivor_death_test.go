package processes

import (
	"os"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// killInside has the kernel kill this rank, if the plan says so, a moment after it begins the
// call that it is about to make: wherever it is then, with microseconds between one place
// and the next. The test could not aim like that.
func (x *survivor) killInside() error {
	d := x.plan.deathOf(x.me())
	if d == nil || d.how != "inside" || x.fell(x.me()) || x.page.at(x.me(), d.after.word).Load() < int64(d.after.value) {
		return nil
	}
	x.page.at(x.me(), died).Store(int64(now()))
	return killAfter(d.after.delay + 1)
}

// killAfter sends SIGKILL to this process.
func killAfter(d time.Duration) error {
	event := struct { // sigevent of the kernel
		value  uint64
		signal int32
		notify int32 // 0: by a signal
		_      [48]byte
	}{signal: int32(unix.SIGKILL)}
	var timer int32
	if _, _, failed := unix.Syscall(unix.SYS_TIMER_CREATE, unix.CLOCK_MONOTONIC, uintptr(unsafe.Pointer(&event)), uintptr(unsafe.Pointer(&timer))); failed != 0 {
		return os.NewSyscallError("timer_create", failed)
	}
	at := [2]unix.Timespec{1: unix.NsecToTimespec(int64(d))} // once, then
	if _, _, failed := unix.Syscall6(unix.SYS_TIMER_SETTIME, uintptr(timer), 0, uintptr(unsafe.Pointer(&at)), 0, 0, 0); failed != 0 {
		return os.NewSyscallError("timer_settime", failed)
	}
	return nil
}

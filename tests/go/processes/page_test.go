package processes

import (
	"os"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// page is memory that the test and all ranks map: by it the test sees how far a
// rank is, also one that is stopped or dead, without the rank's help. Behind the words
// are the ranks' logbooks.
type page []byte

// word is one number of a rank on the page. All but those that say so
// are written by the rank alone.
type word int

const (
	stage       word = iota // of the rank's life
	activity                // the call that it is in
	phase                   // of the plan, from 1
	scatters                // that have returned
	gathers                 // that have returned
	collectives             // that have been entered
	begun                   // scatters that have, of claims
	enough                  // of rounds, of claims; by the test
	died                    // when it was killed, or ended itself; by whoever did it
	resumed                 // when it was last continued; by the test
	members                 // a set: who took part at the end of its last call
	words
)

// Stages of a rank's life.
const (
	started = iota + 1
	joining
	joined
	finished // with the plan: closes next
)

// Activities.
type activityKind int

const (
	computing activityKind = iota
	scattering
	gathering
	collecting
	leaving
	idle // it waits for the test
)

var activities = [...]string{"computing", "in a scatter", "in a gather", "in a collective call", "leaving", "waiting for the test"}

const line = 64 // bytes: ranks do not write each other's cache lines

// newPage makes a page for n ranks, in a file that ranks inherit.
func newPage(n int) (page, *os.File, error) {
	fd, err := unix.MemfdCreate("progress", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fd), "progress")
	if err := f.Truncate(int64(n * (int(words)*line + bookBytes))); err != nil {
		f.Close()
		return nil, nil, err
	}
	p, err := openPage(f)
	return p, f, err
}

func openPage(f *os.File) (page, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return unix.Mmap(int(f.Fd()), 0, int(info.Size()), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
}

func (p page) close() error { return unix.Munmap(p) }

// at is a word of a rank.
func (p page) at(rank int, w word) *atomic.Int64 {
	return (*atomic.Int64)(unsafe.Pointer(&p[(rank*int(words)+int(w))*line]))
}

// now is a clock that all processes of the machine share.
func now() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err) // no Linux is without it
	}
	return time.Duration(t.Nano())
}

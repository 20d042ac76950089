package main

import (
	"fmt"
	"os"
	"sync/atomic"
	"syscall"

	"malt/libmalt"
)

// A launcher hands a rank the writing end of a pipe, as MALT_REPORT=fd:inode:
// python/malt/_ranks/report.py has what is said there. The inode is compared, because the
// program, or one between the launcher and the rank, may have opened something else under that
// number.
type report struct {
	fd    int
	inode uint64
}

// surviving is where a rank of a job that goes on after a death reports; nil: nowhere.
var surviving atomic.Pointer[report]

// reporting says that this rank begins to join, for which all others have to, and returns what says that it has
// joined, and what then concerns the launcher: a rank that records events shows them to others as long as it lives;
// a job may go on after a death, as long as so many ranks are left. Until all ranks have said so, a death ends the
// job. It looks at the environment now: Python takes the pipe out of that.
func reporting(c libmalt.Config) (joined func()) {
	surviving.Store(nil)
	r := launcher()
	r.say("{\"meets\": %d}\n", c.Size)
	return func() {
		r.say("{\"meets\": 0}\n")
		if c.Events > 0 {
			r.say("{\"records\": %d}\n", os.Getpid())
		}
		if c.Continue {
			surviving.Store(r)
			r.survives(max(1, c.MinRanks))
		}
	}
}

// launcher is where the launcher named in the environment hears of this rank.
func launcher() *report {
	r := report{fd: -1}
	_, _ = fmt.Sscanf(getenv("MALT_REPORT"), "%d:%d", &r.fd, &r.inode)
	return &r
}

// reportGaveUp says that this process does not join any more.
func reportGaveUp() { launcher().say("{\"meets\": null}\n") }

// reportLate says that the job had ended before this process could take the place of a dead rank.
func reportLate() { launcher().say("{\"late\": true}\n") }

// reportLast says that this rank has left, so that its end is not a death, or that it is expelled: the others have
// gone on without it, so its end, however it comes, is not that of the job.
func reportLast(what string) {
	if r := surviving.Swap(nil); r != nil {
		r.say("{%q: true}\n", what)
	}
}

// reportAborted says, before the other ranks hear of it, that the end of this rank will be
// that of the job, however its process ends.
func reportAborted() {
	if r := surviving.Load(); r != nil {
		r.survives(0)
	}
}

func (r *report) survives(least int) { r.say("{\"survives\": %d}\n", least) }

func (r *report) say(format string, values ...any) {
	var s syscall.Stat_t
	if syscall.Fstat(r.fd, &s) == nil && s.Mode&syscall.S_IFMT == syscall.S_IFIFO && s.Ino == r.inode {
		_, _ = syscall.Write(r.fd, fmt.Appendf(nil, format, values...))
	}
}

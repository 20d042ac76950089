package mem

import (
	"strconv"

	"golang.org/x/sys/unix"
)

// pfExiting is PF_EXITING of the kernel's task flags.
const pfExiting = 0x4

// Exiting tells whether the process runs no more: all its threads are in the kernel's
// do_exit. The descriptor of a Process says so only when its memory has been unmapped, some
// 70 ms per GB later.
//
// A thread sets PF_EXITING in exit_signals (kernel/exit.c, do_exit), behind a core dump and
// any stop, and does not come back to user mode. All that the kernel stores for it from
// there on are words of its own, clear_child_tid and robust futexes. What the thread stored
// itself comes before: it has entered the kernel since.
//
// A thread that is not exiting can start another. So threads are listed twice: whoever lives
// at the second look was there at the first, or was started by one that was and was not
// exiting then. The kernel's own count of them says whether a list is whole.
//
// false: it runs, is stopped, or this process could not find out.
func (p *Process) Exiting() bool {
	path := "/proc/" + strconv.Itoa(p.Pid)
	leader := path + "/task/" + strconv.Itoa(p.Pid) + "/stat"
	if s, ok := readStat(unix.AT_FDCWD, leader); !ok || s.flags&pfExiting == 0 {
		return false // the usual
	}
	// The folder stays with this process if its id is used again.
	dir, err := unix.Open(path, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(dir)
	if s, ok := readStat(dir, "stat"); !ok || s.start != p.start {
		return false
	}
	before := threads(dir)
	for tid := range before {
		if s, ok := readStat(dir, "task/"+tid+"/stat"); !ok || s.flags&pfExiting == 0 {
			return false
		}
	}
	count, ok := readStat(dir, "stat")
	now := threads(dir)
	for tid := range now {
		if !before[tid] {
			return false
		}
	}
	return ok && len(now) > 0 && len(now) == count.threads
}

// readStat reads a file stat, also of a zombie.
func readStat(dir int, path string) (s stat, ok bool) {
	fd, err := unix.Openat(dir, path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return s, false
	}
	defer unix.Close(fd)
	var room [1024]byte
	n, err := unix.Read(fd, room[:])
	if err == nil {
		s, err = parseStat(room[:n])
	}
	return s, err == nil
}

// threads lists the ids in the folder task of dir; nil where it cannot be read.
func threads(dir int) map[string]bool {
	fd, err := unix.Openat(dir, "task", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	defer unix.Close(fd)
	all := map[string]bool{}
	room := make([]byte, 8<<10)
	for {
		n, err := unix.ReadDirent(fd, room)
		if err != nil {
			return nil
		}
		if n == 0 {
			return all
		}
		_, _, names := unix.ParseDirent(room[:n], -1, nil)
		for _, name := range names {
			all[name] = true
		}
	}
}

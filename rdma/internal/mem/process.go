package mem

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// Cores is how many cores these processes may use, all together: the union of their affinity
// masks. 0 is this process. One that is gone has none.
func Cores(pids ...int) int {
	var all unix.CPUSet
	for _, pid := range pids {
		var set unix.CPUSet
		if unix.SchedGetaffinity(pid, &set) == nil {
			for i := range set {
				all[i] |= set[i]
			}
		}
	}
	return max(all.Count(), 1)
}

// ErrNoProcess: no live process has that id, or another than the one meant has
// it by now.
var ErrNoProcess = errors.New("no such process")

// StartTime is when a process began, in clock ticks since the machine did.
// Together with its id it names a process for ever; the id alone is used again.
// A zombie is ErrNoProcess.
func StartTime(pid int) (uint64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			return 0, ErrNoProcess
		}
		return 0, fmt.Errorf("start time of process %d: %w", pid, err)
	}
	s, err := parseStat(b)
	if err == nil && (s.state == 'Z' || s.state == 'X') {
		err = ErrNoProcess
	}
	return s.start, err
}

// stat is what is of use of /proc/pid/stat or that of a thread.
type stat struct {
	state   byte   // field 3
	flags   uint64 // 9
	threads int    // 20, of the process
	start   uint64 // 22
}

// parseStat reads it. Field 2 is the program's name in parentheses, which may itself hold blanks and
// parentheses.
func parseStat(b []byte) (s stat, err error) {
	end := bytes.LastIndexByte(b, ')')
	f := bytes.Fields(b[end+1:])
	if end < 0 || len(f) < 20 {
		return s, fmt.Errorf("cannot read process state from %q", b)
	}
	flags, bad := strconv.ParseUint(string(f[6]), 10, 64)
	threads, worse := strconv.Atoi(string(f[17]))
	start, worst := strconv.ParseUint(string(f[19]), 10, 64)
	return stat{f[0][0], flags, threads, start}, errors.Join(bad, worse, worst)
}

// Stopped tells whether a process is stopped, by a signal or by a debugger.
func Stopped(pid int) bool {
	b, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	s, err := parseStat(b)
	return err == nil && (s.state == 'T' || s.state == 't')
}

// Process watches one process by a descriptor, which stays with that process
// when its id is used again.
type Process struct {
	Pid   int
	fd    int // -1: the kernel has no pidfd; the process is looked up by id
	start uint64
}

// OpenProcess watches the process pid that began at start. It fails with
// ErrNoProcess where that one is gone.
func OpenProcess(pid int, start uint64) (*Process, error) {
	fd, err := unix.PidfdOpen(pid, 0)
	switch err {
	case nil:
		track(fd)
	case unix.ESRCH:
		return nil, ErrNoProcess
	case unix.ENOSYS, unix.EPERM: // before Linux 5.3, or a sandbox's filter
		fd = -1
	default:
		return nil, fmt.Errorf("pidfd_open %d: %w", pid, err)
	}
	p := &Process{Pid: pid, fd: fd, start: start}
	// The descriptor holds the process, so that the id cannot be used again
	// between this look and the next: whom we compare is whom we watch.
	if now, err := StartTime(pid); err != nil || now != start {
		p.Close()
		if err == nil {
			err = ErrNoProcess
		}
		return nil, err
	}
	return p, nil
}

// Close gives up the descriptor.
func (p *Process) Close() {
	if p.fd >= 0 {
		untrack(p.fd)
		_ = unix.Close(p.fd)
		p.fd = -1
	}
}

// Kill ends the process with SIGKILL.
func (p *Process) Kill() error {
	if p.fd >= 0 {
		return unix.PidfdSendSignal(p.fd, unix.SIGKILL, nil, 0)
	}
	if p.gone() {
		return ErrNoProcess
	}
	return unix.Kill(p.Pid, unix.SIGKILL)
}

// gone asks by id, for processes without a descriptor.
func (p *Process) gone() bool {
	now, err := StartTime(p.Pid)
	return errors.Is(err, ErrNoProcess) || err == nil && now != p.start
}

// Event is a descriptor that ends WaitExit from another goroutine.
type Event struct{ fd int }

// NewEvent makes one.
func NewEvent() (*Event, error) {
	fd, err := unix.Eventfd(0, unix.EFD_CLOEXEC|unix.EFD_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("eventfd: %w", err)
	}
	track(fd)
	return &Event{fd}, nil
}

// Set ends the WaitExit that runs, or else the next.
func (e *Event) Set() { _, _ = unix.Write(e.fd, []byte{1, 0, 0, 0, 0, 0, 0, 0}) }

// Close gives up the descriptor; no WaitExit may run.
func (e *Event) Close() {
	untrack(e.fd)
	_ = unix.Close(e.fd)
}

// lookEvery is how often processes without a descriptor are looked up.
const lookEvery = 100 * time.Millisecond

// WaitExit sleeps until one of the processes has ended (all its threads: a
// zombie counts as ended) or e was set, and returns the indices of the
// processes that have ended. nil entries are skipped.
func WaitExit(e *Event, procs []*Process) (ended []int, err error) {
	fds := []unix.PollFd{{Fd: int32(e.fd), Events: unix.POLLIN}}
	var index []int
	timeout := -1
	for i, p := range procs {
		if p == nil {
			continue
		}
		if p.fd < 0 {
			timeout = int(lookEvery / time.Millisecond)
		}
		// poll skips negative descriptors.
		fds = append(fds, unix.PollFd{Fd: int32(p.fd), Events: unix.POLLIN})
		index = append(index, i)
	}
	for {
		n, err := unix.Poll(fds, timeout)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("poll of %d processes: %w", len(index), err)
		}
		for j, i := range index {
			if fds[j+1].Revents != 0 || procs[i].fd < 0 && procs[i].gone() {
				ended = append(ended, i)
			}
		}
		if fds[0].Revents != 0 {
			var count [8]byte
			_, _ = unix.Read(e.fd, count[:])
			return ended, nil
		}
		if n > 0 || len(ended) > 0 {
			return ended, nil
		}
	}
}

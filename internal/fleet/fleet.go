// Package fleet runs the ranks of a test as processes of their own: the test
// binary again, in a role. Only tests import it.
//
//	func TestMain(m *testing.M) { fleet.Main(m, map[string]fleet.Role{"echo": echo}) }
//
//	f := fleet.Start(t, "echo", 3)
//	f[1].Tell("hello")
//	f[1].Expect("hello")
//	f[2].Signal(syscall.SIGKILL)
//
// Parent and ranks exchange lines of text. Processes that are left when the test ends are
// killed, and ranks end when their parent does.
package fleet

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Patience is how long a test waits for what has to come: only a defect lasts so long.
var Patience = patience()

// Impatient is a variable of the environment: how long it is where tests are to find defects.
const Impatient = "MALT_TEST_PATIENCE"

func patience() time.Duration {
	if d, err := time.ParseDuration(os.Getenv(Impatient)); err == nil {
		return d
	}
	return 5 * time.Minute
}

// Growing calls try with more and more time, until it is content: for a call that is to run
// out of time, but has to have seen something by then.
func Growing(t testing.TB, try func(ctx context.Context) error) {
	t.Helper()
	for limit := 50 * time.Millisecond; ; limit *= 4 {
		ctx, cancel := context.WithTimeout(context.Background(), limit)
		err := try(ctx)
		cancel()
		if err == nil {
			return
		}
		if limit > Patience/4 {
			t.Fatal(err)
		}
	}
}

// Stopwatch begins to measure how long something takes, for what is promised within some time: in the processor
// time of a thread that always wants to run. A machine whose processors have other work, or that stands
// still, gives it as little as it gives those that are measured.
func Stopwatch() (took func() time.Duration) {
	var ran atomic.Int64
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for before := threadTime(); ; {
			select {
			case <-stop:
				return
			default:
			}
			now := threadTime()
			ran.Add(int64(min(now-before, time.Millisecond))) // more at once is a host's doing, which has stopped this machine
			before = now
		}
	}()
	return func() time.Duration {
		close(stop)
		<-stopped
		return time.Duration(ran.Load())
	}
}

func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return time.Duration(t.Nano())
}

const variable = "MALT_TEST_FLEET" // role, rank, size, store

// Role is what a rank does. An error is its exit status 1.
type Role func(r *Rank) error

// Main runs the tests, or in a process of a fleet its role.
func Main(m *testing.M, roles map[string]Role) {
	value, child := os.LookupEnv(variable)
	if !child {
		os.Exit(m.Run())
	}
	f := strings.Fields(value)
	rank, _ := strconv.Atoi(f[1])
	size, _ := strconv.Atoi(f[2])
	r := &Rank{Rank: rank, Size: size, Store: f[3], Args: os.Args[1:], lines: make(chan string)}
	go r.listen()
	if err := roles[f[0]](r); err != nil {
		fmt.Fprintf(os.Stderr, "rank %d (%s): %v\n", rank, f[0], err)
		os.Exit(1)
	}
	os.Exit(0)
}

// Rank is what a process of a fleet knows.
type Rank struct {
	Rank, Size int
	Store      string // a fresh "local:" store
	Args       []string

	lines chan string
}

// listen hands over what the parent says. When the parent is gone, so are we.
func (r *Rank) listen() {
	for s := bufio.NewScanner(os.Stdin); s.Scan(); {
		r.lines <- s.Text()
	}
	os.Exit(3)
}

// Hear waits for the parent's next line.
func (r *Rank) Hear() string { return <-r.lines }

// Heard is Hear that does not wait.
func (r *Rank) Heard() (line string, ok bool) {
	select {
	case line = <-r.lines:
		return line, true
	default:
		return "", false
	}
}

// Say tells the parent a line.
func (r *Rank) Say(format string, args ...any) { fmt.Printf(format+"\n", args...) }

// Process is a rank seen from the test.
type Process struct {
	t     testing.TB
	rank  int
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan string
	wait  func() error // once
}

// Start starts n ranks in a role, with arguments.
func Start(t testing.TB, role string, n int, args ...string) []*Process {
	t.Helper()
	store := NewStore()
	all := make([]*Process, n)
	for rank := range n {
		all[rank] = StartOne(t, role, rank, n, store, args...)
	}
	return all
}

var stores struct {
	sync.Mutex
	n int
}

// NewStore is the store of a job that no other test has.
func NewStore() string {
	stores.Lock()
	defer stores.Unlock()
	stores.n++
	return fmt.Sprintf("local:%x%x%04x", os.Getpid(), time.Now().UnixNano(), stores.n)
}

// StartOne starts one rank of a job.
func StartOne(t testing.TB, role string, rank, size int, store string, args ...string) *Process {
	t.Helper()
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s %d %d %s", variable, role, rank, size, store),
		"GORACE=atexit_sleep_ms=0") // the race detector's pause would look like a slow end
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p := &Process{t: t, rank: rank, cmd: cmd, in: in, lines: make(chan string, 1000)}
	go func() {
		for s := bufio.NewScanner(out); s.Scan(); {
			p.lines <- s.Text()
		}
		close(p.lines)
	}()
	p.wait = sync.OnceValue(cmd.Wait)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Process.Signal(syscall.SIGCONT)
		for range p.lines { // Wait closes the pipe under who still reads
		}
		_ = p.wait()
	})
	return p
}

// Kill kills one of the ranks. Each of the others must say within a second which one is dead, and ends then.
func Kill(t testing.TB, all []*Process, victim int) {
	t.Helper()
	others := slices.Delete(slices.Clone(all), victim, victim+1)
	took := Stopwatch()
	all[victim].Signal(syscall.SIGKILL)
	for _, p := range others {
		if line, ok := p.Line(Patience); !ok || line != fmt.Sprintf("dead %d", victim) {
			t.Errorf("rank %d said %q, expected that rank %d is dead", p.rank, line, victim)
		}
	}
	if d := took(); d > time.Second {
		t.Errorf("known after %v, expected within a second", d)
	}
	for _, p := range others {
		p.Expect("closed <nil> []")
		p.End()
	}
}

// Pid of the process.
func (p *Process) Pid() int { return p.cmd.Process.Pid }

// Tell sends a line.
func (p *Process) Tell(line string) {
	p.t.Helper()
	if _, err := fmt.Fprintln(p.in, line); err != nil {
		p.t.Fatalf("rank %d: cannot be told %q: %v", p.rank, line, err)
	}
}

// Expect waits for the next line, which must begin with prefix, and returns the
// rest.
func (p *Process) Expect(prefix string) string {
	p.t.Helper()
	line, ok := p.Line(Patience)
	rest, fits := strings.CutPrefix(line, prefix)
	if !ok || !fits {
		p.t.Fatalf("rank %d said %q (%v), expected %q", p.rank, line, ok, prefix)
	}
	return strings.TrimSpace(rest)
}

// Line waits for the next line; not ok when there is none in time, or the
// process has ended.
func (p *Process) Line(timeout time.Duration) (line string, ok bool) {
	select {
	case line, ok = <-p.lines:
		return line, ok
	case <-time.After(timeout):
		return "", false
	}
}

// Signal sends a signal. What is sent SIGSTOP has stopped, or ended, when it returns.
func (p *Process) Signal(s syscall.Signal) {
	p.t.Helper()
	err := p.cmd.Process.Signal(s)
	if err == nil && s == syscall.SIGSTOP {
		err = unix.EINTR
		for err == unix.EINTR {
			err = unix.Waitid(unix.P_PID, p.cmd.Process.Pid, nil, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
		}
	}
	if err != nil {
		p.t.Fatalf("rank %d: signal %v: %v", p.rank, s, err)
	}
}

// End waits until the process has ended, and fails the test unless that was
// with status 0.
func (p *Process) End() {
	p.t.Helper()
	for line := range p.lines {
		p.t.Errorf("rank %d said %q at its end", p.rank, line)
	}
	if err := p.wait(); err != nil {
		p.t.Errorf("rank %d ended with %v", p.rank, err)
	}
}

package mem

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

const headlessKey = "MALT_TEST_HEADLESS"

// init is on the first thread of the process: with the key that ends, and others go on.
func init() {
	if os.Getenv(headlessKey) == "" {
		return
	}
	go func() {
		for { // until the first thread is a zombie
			if s, ok := readStat(unix.AT_FDCWD, "/proc/self/stat"); ok && s.flags&pfExiting != 0 {
				break
			}
		}
		_, _ = os.Stdout.WriteString("headless\n")
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
}

// watched opens a child that exec has started.
func watched(t *testing.T, cmd *exec.Cmd) *Process {
	t.Helper()
	s, ok := readStat(unix.AT_FDCWD, "/proc/"+strconv.Itoa(cmd.Process.Pid)+"/stat")
	if !ok {
		t.Fatal("the child is not in /proc")
	}
	return &Process{Pid: cmd.Process.Pid, fd: -1, start: s.start}
}

func wantExiting(t *testing.T, what string, p *Process, want bool) {
	t.Helper()
	for range 100 {
		if got := p.Exiting(); got != want {
			t.Fatalf("%s: exiting is %v", what, got)
		}
	}
}

// inState waits until the process is in that state of /proc.
func inState(t *testing.T, p *Process, want byte) {
	t.Helper()
	for {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(p.Pid) + "/stat")
		if err != nil {
			t.Fatal(err)
		}
		if f := bytes.Fields(b[bytes.LastIndexByte(b, ')')+1:]); f[0][0] == want {
			return
		}
	}
}

func TestExiting(t *testing.T) {
	wantExiting(t, "this process", &Process{Pid: os.Getpid()}, false)
	cmd, _, _ := child(t)
	p := watched(t, cmd)
	wantExiting(t, "one that runs", p, false)
	if err := cmd.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	inState(t, p, 'T')
	wantExiting(t, "one that is stopped", p, false)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	inState(t, p, 'Z') // until Wait is called
	wantExiting(t, "one that was killed", p, true)
	wantExiting(t, "another with its id", &Process{Pid: p.Pid, start: p.start + 1}, false)
	_ = cmd.Wait()
	wantExiting(t, "one that is no more", p, false)
}

// A process goes on without its first thread.
func TestExitingThread(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), headlessKey+"=1", "GOMAXPROCS=4", "GOGC=off")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "headless\n" {
		t.Fatalf("the child says %q (%v)", line, err)
	}
	p := watched(t, cmd)
	wantExiting(t, "one whose first thread has ended", p, false)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for !p.Exiting() { // all of them are ending, or have
	}
}

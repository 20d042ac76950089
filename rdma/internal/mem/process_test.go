package mem

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"testing"

	"golang.org/x/sys/unix"
)

// child starts a process that ends when its standard input does.
func child(t *testing.T) (cmd *exec.Cmd, start uint64, end func()) {
	t.Helper()
	cmd = exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { in.Close(); cmd.Wait() })
	start, err = StartTime(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return cmd, start, func() { in.Close() }
}

func TestWaitExitNamesTheDead(t *testing.T) {
	for _, how := range []string{"pidfd", "by id"} {
		t.Run(how, func(t *testing.T) {
			e, err := NewEvent()
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			first, start1, _ := child(t)
			second, start2, end2 := child(t)
			p1, err := OpenProcess(first.Process.Pid, start1)
			if err != nil {
				t.Fatal(err)
			}
			defer p1.Close()
			p2, err := OpenProcess(second.Process.Pid, start2)
			if err != nil {
				t.Fatal(err)
			}
			defer p2.Close()
			if how == "by id" { // as on a kernel without pidfd
				p1.Close()
				p2.Close()
			}
			procs := []*Process{p1, nil, p2}

			e.Set()
			if ended, err := WaitExit(e, procs); err != nil || ended != nil {
				t.Errorf("set: %v, %v", ended, err)
			}
			end2() // nobody reaps it: a zombie counts as dead
			if ended, err := WaitExit(e, procs); err != nil || !slices.Equal(ended, []int{2}) {
				t.Errorf("ended %v, %v; expected [2]", ended, err)
			}
			first.Process.Kill()
			if ended, err := WaitExit(e, []*Process{p1, nil, nil}); err != nil || !slices.Equal(ended, []int{0}) {
				t.Errorf("ended %v, %v; expected [0]", ended, err)
			}
		})
	}
}

func TestOpenProcessGuardsAgainstReusedIds(t *testing.T) {
	me, err := StartTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	p, err := OpenProcess(os.Getpid(), me)
	if err != nil {
		t.Fatal(err)
	}
	p.Close()
	if _, err := OpenProcess(os.Getpid(), me+1); !errors.Is(err, ErrNoProcess) {
		t.Errorf("another start time: %v, expected ErrNoProcess", err)
	}
	cmd, start, end := child(t)
	end()
	if err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := StartTime(cmd.Process.Pid); !errors.Is(err, ErrNoProcess) {
		t.Errorf("a zombie: %v, expected ErrNoProcess", err)
	}
	cmd.Wait()
	if _, err := OpenProcess(cmd.Process.Pid, start); !errors.Is(err, ErrNoProcess) {
		t.Errorf("ended and reaped: %v, expected ErrNoProcess", err)
	}
}

func TestParseStat(t *testing.T) {
	const rest = " 1 1 1 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4711 1 1\n"
	if s, err := parseStat([]byte("12 (a b) c) Z" + rest)); s != (stat{'Z', 4194560, 1, 4711}) || err != nil {
		t.Errorf("%+v, %v; expected a zombie that was started at 4711", s, err)
	}
	for _, bad := range []string{"", "12", "12 (x) S 1 2", "S" + rest} {
		if _, err := parseStat([]byte(bad)); err == nil {
			t.Errorf("%q was accepted", bad)
		}
	}
}

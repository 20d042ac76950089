package shm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"malt/internal/fleet"
)

var modes = []string{"newest", "bsp", "queue"}

// workers starts n ranks at work.
func workers(t *testing.T, n int, mode string) []*fleet.Process {
	t.Helper()
	f := fleet.Start(t, "worker", n, mode)
	for _, p := range f {
		p.Expect("ready")
	}
	return f
}

// clock asks how far a worker is.
func clock(t *testing.T, p *fleet.Process) int {
	t.Helper()
	p.Tell("clock")
	c, err := strconv.Atoi(p.Expect("clock"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestKilled is what the others see of a rank that is killed at any moment: its
// death, by name, within a second, whatever they were doing.
func TestKilled(t *testing.T) {
	for _, mode := range modes {
		for _, n := range []int{2, 3, 8} {
			t.Run(fmt.Sprintf("%s/%d", mode, n), func(t *testing.T) {
				f := workers(t, n, mode)
				victim := rand.IntN(n)
				time.Sleep(time.Duration(rand.IntN(20_000)) * time.Microsecond) // any moment
				fleet.Kill(t, f, victim)
			})
		}
	}
}

// TestG4StoppedHoldsNobodyUp: in newest mode the others scatter and gather on
// while SIGSTOP holds a rank, which is not dead.
func TestG4StoppedHoldsNobodyUp(t *testing.T) {
	f := workers(t, 3, "newest")
	for range 10 {
		f[1].Signal(syscall.SIGSTOP)
		for _, p := range []*fleet.Process{f[0], f[2]} {
			for c := clock(t, p); clock(t, p) < c+10; {
			}
		}
		f[1].Signal(syscall.SIGCONT)
		c := clock(t, f[1])
		for clock(t, f[1]) < c+10 {
		}
	}
	leave(t, f)
}

// TestStoppedIsWaitedFor is the other side: where the mode waits, it waits, and
// goes on as if nothing had been.
func TestStoppedIsWaitedFor(t *testing.T) {
	for _, mode := range []string{"bsp", "queue"} {
		t.Run(mode, func(t *testing.T) {
			f := workers(t, 3, mode)
			f[1].Signal(syscall.SIGSTOP)
			// It may be a step ahead, and then in the middle of one; not more.
			for answers := 0; ; answers++ {
				f[0].Tell("clock")
				if _, ok := f[0].Line(100 * time.Millisecond); !ok {
					break
				}
				if answers == 3 {
					t.Fatal("rank 0 goes on while rank 1 is stopped")
				}
			}
			f[1].Signal(syscall.SIGCONT)
			f[0].Expect("clock")
			leave(t, f)
		})
	}
}

// leave ends workers in good order, in a random one.
func leave(t *testing.T, f []*fleet.Process) {
	t.Helper()
	for _, i := range rand.Perm(len(f)) {
		f[i].Tell("finish")
		f[i].Expect("closed <nil> []")
		f[i].End()
	}
}

func TestLeaving(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) { leave(t, workers(t, 4, mode)) })
	}
}

// TestRandomSchedules stops, continues, ends and kills at random.
func TestRandomSchedules(t *testing.T) {
	schedules := 20
	if testing.Short() {
		schedules = 4
	}
	for range schedules {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 0))
		n, mode := 2+rng.IntN(7), modes[rng.IntN(len(modes))]
		t.Run(fmt.Sprintf("%s/%d/seed=%d", mode, n, seed), func(t *testing.T) {
			f := workers(t, n, mode)
			kill := rng.IntN(2) == 0
			stopped := -1
			for range 10 {
				time.Sleep(time.Duration(rng.IntN(3000)) * time.Microsecond)
				if stopped >= 0 {
					f[stopped].Signal(syscall.SIGCONT)
					stopped = -1
				} else {
					stopped = rng.IntN(n)
					f[stopped].Signal(syscall.SIGSTOP)
				}
			}
			if kill {
				victim := rng.IntN(n)
				f[victim].Signal(syscall.SIGKILL)
				if stopped >= 0 && stopped != victim {
					f[stopped].Signal(syscall.SIGCONT)
				}
				for i, p := range f {
					if i != victim {
						p.Expect(fmt.Sprintf("dead %d", victim))
						p.Expect("closed <nil> []")
						p.End()
					}
				}
				return
			}
			if stopped >= 0 {
				f[stopped].Signal(syscall.SIGCONT)
			}
			leave(t, f)
		})
	}
	if left, _ := filepath.Glob("/dev/shm/*malt*"); left != nil {
		t.Errorf("left: %v", left)
	}
}

// limited makes a memory control group that allows 256 MiB, or skips the test.
func limited(t *testing.T) (dir string) {
	t.Helper()
	dir = fmt.Sprintf("/sys/fs/cgroup/memory/malt-test-%d", os.Getpid())
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Skipf("cannot make a memory control group: %v", err)
	}
	t.Cleanup(func() {
		for range 5000 { // until the kernel has let go of the processes
			if os.Remove(dir) == nil {
				return
			}
			time.Sleep(time.Millisecond)
		}
		t.Errorf("%s is left", dir)
	})
	if err := os.WriteFile(dir+"/memory.limit_in_bytes", []byte("256M"), 0); err != nil {
		t.Skipf("cannot limit it: %v", err)
	}
	return dir
}

// TestMemoryLimit runs a rank in a control group that allows little: what does
// not fit is an error of that call, and the process lives.
func TestMemoryLimit(t *testing.T) {
	p := fleet.StartOne(t, "glutton", 0, 1, fleet.NewStore(), limited(t))
	for _, want := range []string{"map: true", "slot: true", "sum: true", "alive"} {
		if got := p.Expect(""); !strings.HasPrefix(got, want) {
			t.Errorf("said %q, expected %q", got, want)
		}
	}
	p.End()
}

// TestMemoryLimitTogether: ranks that ask at the same moment are not promised
// the same memory twice.
func TestMemoryLimitTogether(t *testing.T) {
	f := fleet.Start(t, "crowd", 4, limited(t))
	got := 0
	for rank, p := range f {
		switch said := p.Expect(""); said {
		case "got it":
			got++
		case "refused":
		default:
			t.Fatalf("rank %d said %q: was it killed?", rank, said)
		}
	}
	if got > 2 {
		t.Errorf("%d ranks got 100 MiB each out of 256 MiB", got)
	}
	for _, p := range f {
		p.Tell("done")
		p.End()
	}
}

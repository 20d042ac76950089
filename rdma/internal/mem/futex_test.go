package mem

import (
	"math"
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The doorbell's own protocol: a waiter sets the low bit, rechecks and sleeps;
// whoever rings clears it and wakes. Without FutexWake this test hangs.
func TestFutexWakesAllSleepers(t *testing.T) {
	b, err := Map(4096)
	if err != nil {
		t.Fatal(err)
	}
	defer Unmap(b)
	bell, flag := WordAt(b, 0), WordAt(b, 64)
	const sleepers, rounds = 3, 200
	done := make(chan uint64)
	for range sleepers {
		go func() {
			for round := uint64(1); round <= rounds; round++ {
				for {
					d := bell.Or(1) | 1
					if flag.Load() >= round {
						break
					}
					FutexWait(bell, d, 0)
				}
				done <- round
			}
		}()
	}
	for round := uint64(1); round <= rounds; round++ {
		flag.Store(round)
		if old := bell.Add(2) - 2; old&1 != 0 {
			bell.And(^uint64(1))
			FutexWake(bell)
		}
		for range sleepers {
			if got := <-done; got != round {
				t.Fatalf("a sleeper is in round %d, expected %d", got, round)
			}
		}
	}
}

func TestFutexWaitReturns(t *testing.T) {
	var w Word
	w.Store(5)
	FutexWait(&w, 4, 0) // at once: the value differs
	FutexWait(&w, 5, time.Millisecond)
	w.Store(1 << 32)
	FutexWait(&w, 5, 0) // only the low half counts: 0 is not 5
	FutexWait(&w, 0, time.Millisecond)
}

func TestYieldAndCores(t *testing.T) {
	Yield()
	all := Cores(0)
	if all < 1 || all > runtime.NumCPU() {
		t.Errorf("Cores(0) = %d of %d", all, runtime.NumCPU())
	}
	if n := Cores(0, os.Getpid(), math.MaxInt32); n != all {
		t.Errorf("twice this process, and one that is not there: %d cores, not %d", n, all)
	}
}

// TestCoresOfBound: processes that are each bound to a core have as many as they are.
func TestCoresOfBound(t *testing.T) {
	var own unix.CPUSet
	if err := unix.SchedGetaffinity(0, &own); err != nil {
		t.Fatal(err)
	}
	var pids []int
	for core := range 64 * len(own) {
		if !own.IsSet(core) || len(pids) == 2 {
			continue
		}
		cmd, _, _ := child(t)
		var one unix.CPUSet
		one.Set(core)
		if err := unix.SchedSetaffinity(cmd.Process.Pid, &one); err != nil {
			t.Fatal(err)
		}
		pids = append(pids, cmd.Process.Pid)
	}
	if n := Cores(pids...); n != len(pids) {
		t.Errorf("%d processes on a core each: %d cores", len(pids), n)
	}
	if n := Cores(pids[0], pids[0]); n != 1 {
		t.Errorf("one core: %d", n)
	}
}

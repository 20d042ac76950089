package mem

import (
	"runtime"
	"testing"
	"time"
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
	if n := Cores(); n < 1 || n > runtime.NumCPU() {
		t.Errorf("Cores() = %d of %d", n, runtime.NumCPU())
	}
}

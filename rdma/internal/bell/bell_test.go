package bell

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"malt/rdma/internal/mem"
)

// sleeper sleeps on the futex without end, so that a lost wake-up hangs.
type sleeper struct{ context.Context }

func (sleeper) Sleep(word *uint32, seen uint32) {
	mem.FutexWait((*mem.Word)(unsafe.Pointer(word)), uint64(seen), 0)
}

// TestSleepersAreWoken has goroutines take turns, some of which sleep on the cond
// of their bell, some on its count.
func TestSleepersAreWoken(t *testing.T) {
	const all, rounds = 4, 2000
	var bells Set
	var made [all]*Bell
	for me := range made {
		made[me], _ = bells.Add(me)
	}
	var turn atomic.Int64
	var done sync.WaitGroup
	for me := range int64(all) {
		own := made[me]
		ctx := context.Background()
		if me%2 == 0 {
			ctx = sleeper{ctx}
		}
		done.Go(func() {
			for n := range int64(rounds) {
				err := own.Wait(ctx, func() bool { return turn.Load() == all*n+me })
				if err != nil {
					t.Error(err)
				}
				turn.Add(1)
				bells.RingAll()
			}
		})
	}
	done.Wait()
}

package shm

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/internal/mem"
	"malt/rdma/rendezvous"
)

// waits are ways to wait; chosen is what a transport does by itself.
var waits = map[string]func(ranks int) rendezvous.Policy{
	"spin":   func(int) rendezvous.Policy { return rendezvous.Policy{Spin: math.MaxInt} },
	"yield":  func(int) rendezvous.Policy { return rendezvous.Policy{Yield: math.MaxInt} },
	"sleep":  func(int) rendezvous.Policy { return rendezvous.Policy{Sleep: nap} },
	"chosen": func(ranks int) rendezvous.Policy { return policyFor(ranks, mem.Cores(0), false) },
}

// BenchmarkWait has ranks, each a process, meet again and again, as in lock-step:
// each raises its word and waits for those of all others.
func BenchmarkWait(b *testing.B) {
	for _, ranks := range []int{2, 4, 8, 16} {
		for _, wait := range []string{"spin", "yield", "sleep", "chosen"} {
			b.Run(fmt.Sprintf("%s/ranks=%d", wait, ranks), func(b *testing.B) {
				f := fleet.Start(b, "pacer", ranks, wait, strconv.Itoa(max(b.N, 20)))
				var ns float64
				if _, err := fmt.Sscan(f[0].Expect("took"), &ns); err != nil {
					b.Fatal(err)
				}
				for _, p := range f {
					p.End()
				}
				b.ReportMetric(ns, "ns/op")
			})
		}
	}
}

// pacer is a rank of BenchmarkWait. Its arguments are how it waits, and how often.
func pacer(r *fleet.Rank) error {
	ctx := context.Background()
	t, err := Open(ctx, rendezvous.Config{Rank: r.Rank, Size: r.Size, Store: r.Store})
	if err != nil {
		return err
	}
	t.policy = waits[r.Args[0]](r.Size)
	rounds, err := strconv.Atoi(r.Args[1])
	if err != nil {
		return err
	}
	words, err := t.Words(ctx, "rounds", 1)
	if err != nil {
		return err
	}
	if err := meetings(ctx, t, words, 0, 10); err != nil { // all are there
		return err
	}
	start := time.Now()
	err = meetings(ctx, t, words, 10, rounds)
	if r.Rank == 0 {
		r.Say("took %d", time.Since(start).Nanoseconds()/int64(rounds))
	}
	return err
}

// meetings are n rounds after the first ones.
func meetings(ctx context.Context, t rdma.Transport, words rdma.Words, first, n int) error {
	for round := uint64(first + 1); round <= uint64(first+n); round++ {
		words.Set(0, round)
		next := 0
		err := t.Wait(ctx, func() bool {
			for ; next < t.Size(); next++ {
				if at, _ := words.Get(next, 0); at < round {
					return false
				}
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

package libmalt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"malt/libmalt"
	"malt/libmalt/reduce"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// lone is a rank that is alone on its host.
type lone struct{ rdma.Viewed }

func (a lone) Near() []int { return []int{a.Rank()} }

// settlers runs a job on as many hosts as ranks, that goes on as long as one lives. A body that
// returns errKilled has ended as a killed process does.
func settlers(t *testing.T, n int, body func(ctx context.Context, w *libmalt.World) error) {
	t.Helper()
	survivorsOn(t, inmem.New(n), 1, func(tr rdma.Transport) rdma.Transport { return lone{tr.(rdma.Viewed)} }, body)
}

// TestG8SettlersAgree kills up to all but one of the ranks, on several hosts, between any two
// calls: all who live have the same array after each sync and each broadcast, and the same sum
// after each allreduce, in which each rank is a bit.
func TestG8SettlersAgree(t *testing.T) {
	const steps = 12
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 9))
		n := []int{2, 3, 5, 8}[seed%4]
		dies := make([]int, n) // at which of its calls; not in the last two, after which ranks leave
		for _, r := range rnd.Perm(n)[:rnd.IntN(n)] {
			dies[r] = 1 + rnd.IntN(4*(steps-2))
		}
		var mu sync.Mutex
		first := map[string][]byte{}
		agree := func(rank int, what string, b []byte) error {
			if dies[rank] > 0 {
				return nil // it may have completed what nobody who lives has
			}
			mu.Lock()
			defer mu.Unlock()
			if old, ok := first[what]; ok && !bytes.Equal(old, b) {
				return fmt.Errorf("seed %d: %s: rank %d has %v, another one %v", seed, what, rank, b[:8], old[:8])
			}
			first[what] = slices.Clone(b)
			return nil
		}
		settlers(t, n, func(ctx context.Context, w *libmalt.World) error {
			r, calls := w.Rank(), 0
			dead := func() bool { calls++; return calls == dies[r] }
			v, err := vector(ctx, w, 100, "")
			if err != nil {
				return err
			}
			for step := range steps {
				if dead() {
					return errKilled
				}
				fill(v.Bytes(), float32(step*100)+float32(r))
				if _, err := v.Scatter(ctx, nil, 1); err != nil {
					return err
				}
				if dead() {
					return errKilled
				}
				if _, err := v.Gather(ctx, ""); err != nil {
					return fmt.Errorf("step %d: %w", step, err)
				}
				if err := agree(r, fmt.Sprint("step ", step), v.Bytes()); err != nil {
					return err
				}
				if dead() {
					return errKilled
				}
				sum := binary.LittleEndian.AppendUint64(nil, math.Float64bits(float64(uint64(1)<<r)))
				if err := w.AllReduce(ctx, sum, reduce.Float64, "sum"); err != nil {
					return fmt.Errorf("sum %d: %w", step, err)
				}
				if err := agree(r, fmt.Sprint("sum ", step), sum); err != nil {
					return err
				}
				if dead() {
					return errKilled
				}
				fill(v.Bytes(), float32(1000*step+r))
				if err := v.Broadcast(ctx, slices.Index(dies, 0)); err != nil {
					return fmt.Errorf("broadcast %d: %w", step, err)
				}
				if err := agree(r, fmt.Sprint("broadcast ", step), v.Bytes()); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// TestSettlersOnGoroutines syncs two vectors, of which one is averaged by an exchange, and makes collective calls, on three goroutines
// of each rank while one dies. A rank in a barrier is not waited for, so ranks may sync a vector
// without each other, and be done with both vectors in another order: each closes what it is done with.
func TestSettlersOnGoroutines(t *testing.T) {
	const n, steps = 3, 40
	for dies := range 8 {
		settlers(t, n, func(ctx context.Context, w *libmalt.World) error {
			vs := make([]*libmalt.Vector, 2)
			for i := range vs {
				var err error
				if vs[i], err = vector(ctx, w, []int{100, 50_000}[i], ""); err != nil {
					return err
				}
			}
			killed := w.Rank() == dies%n
			errs := make(chan error, 3)
			for i, v := range vs {
				go func() {
					for step := range steps {
						if killed && step == 5*dies+i {
							errs <- errKilled
							return
						}
						if _, err := v.Sync(ctx, 1); err != nil {
							errs <- fmt.Errorf("vector %d, step %d: %w", i, step, err)
							return
						}
					}
					errs <- v.Close()
				}()
			}
			go func() {
				for step := range steps {
					if killed && step == 3*dies {
						errs <- errKilled
						return
					}
					if err := w.Barrier(ctx); err != nil {
						errs <- fmt.Errorf("barrier %d: %w", step, err)
						return
					}
				}
				errs <- nil
			}()
			var err error
			for range cap(errs) { // also of the rank that dies: after that nothing of it runs
				if e := <-errs; e != nil && err == nil {
					err = e
				}
			}
			return err
		})
	}
}

// TestSettlingWaitsForAnotherCallInside: a rank does not say where it is with a vector while a call of
// another goroutine works on it, be it a collective call that is over or has yet to begin.
func TestSettlingWaitsForAnotherCallInside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		there := make(chan error)
		settlers(t, 3, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 100, "")
			switch {
			case err != nil:
				return err
			case w.Rank() == 1:
				return w.Barrier(ctx)
			case w.Rank() == 2:
				<-there
				return errKilled
			}
			leave, over := make(chan error), make(chan error, 1)
			go v.Alone(func() error { there <- nil; return <-leave })
			go func() { over <- w.Barrier(ctx) }()
			defer close(leave)
			synctest.Wait()
			select {
			case err := <-over:
				return fmt.Errorf("the barrier is over, with %v, while a call is inside the vector", err)
			default:
			}
			leave <- nil
			return <-over
		})
	})
}

// slow is a rank that does not wait before something is there.
type slow struct {
	rdma.Viewed
	there  <-chan struct{} // nil: it waits at once
	mapped int             // pieces of memory
}

func (l *slow) Map(bytes int) ([]byte, error) {
	l.mapped++
	return l.Viewed.Map(bytes)
}

func (l *slow) Unmap(b []byte) error {
	l.mapped--
	return l.Viewed.Unmap(b)
}

func (l *slow) Wait(ctx context.Context, cond func() bool) error {
	if l.there != nil {
		<-l.there
	}
	return l.Viewed.Wait(ctx, cond)
}

// TestG8ClosedAfterTheSync: rank 0 completes a sync and closes the vector, or leaves the job, and then
// rank 2 dies. Rank 1, which is still in that sync, has the same result. Another vector of that name
// is another one. At the end all memory is given back.
func TestG8ClosedAfterTheSync(t *testing.T) {
	for _, length := range []int{100, acrossLength} { // through boxes, and by an exchange
		for _, leaves := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				closed, dead := make(chan struct{}), make(chan struct{})
				ranks := make([]slow, 3)
				survivorsOn(t, inmem.NewHosts(0, 1, 2), 1, func(tr rdma.Transport) rdma.Transport {
					if tr.Rank() == 2 {
						go func() { <-closed; inmem.Kill(tr); close(dead) }()
					}
					ranks[tr.Rank()].Viewed = tr.(rdma.Viewed)
					return &ranks[tr.Rank()]
				}, func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, length, "start=own")
					if err != nil {
						return err
					}
					mapped := ranks[w.Rank()].mapped
					switch w.Rank() {
					case 0:
						if err = mean(ctx, v, 1, 2); err == nil && !leaves {
							err = unmapped(v)
						}
						if close(closed); err != nil || leaves {
							return err
						}
						<-dead
					case 1:
						synctest.Wait() // the others have arrived
						if ranks[1].there = dead; length < acrossLength {
							fill(v.Bytes(), 2)
							_, err = v.Scatter(ctx, nil, 1)
							<-dead
							_, gather := v.Gather(ctx, "")
							err = errors.Join(err, gather)
						} else {
							err = mean(ctx, v, 2, 2)
						}
						if x, torn := constant(v.Bytes()); err != nil || torn != nil || x != 2 {
							return fmt.Errorf("%d values, rank 0 leaves: %v: %v, %v, %v", length, leaves, x, torn, err)
						}
						if leaves {
							return nil
						}
						err = unmapped(v)
					case 2:
						_ = mean(ctx, v, 3, 2) // perhaps it dies before it knows
						<-dead
						return errKilled
					}
					again, failed := vector(ctx, w, length, "start=own")
					if more := ranks[w.Rank()].mapped - mapped; more > 0 {
						err = errors.Join(err, fmt.Errorf("the closed vector has %d pieces of memory", more))
					}
					if err = errors.Join(err, failed); err == nil {
						err = errors.Join(mean(ctx, again, float32(w.Rank()), 0.5), unmapped(again))
					}
					return err
				})
				if n := ranks[0].mapped; !leaves && length < acrossLength && n != 0 {
					t.Errorf("rank 0 has %d pieces of memory left", n)
				}
			})
		}
	}
}

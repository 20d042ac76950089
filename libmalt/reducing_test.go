package libmalt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"malt/libmalt"
	"malt/libmalt/reduce"
	"malt/libmalt/routetest"
	"malt/rdma"
)

// inPlaceCount is that of an array which is long enough to be reduced in place.
const inPlaceCount = 10_007

// TestAllReduceIsTheFold: an allreduce of a vector, through the stream or in place,
// gives bit for bit the fold of all ranks' values in the order of ranks.
func TestAllReduceIsTheFold(t *testing.T) {
	for transport, open := range transports() {
		for _, n := range []int{1, 2, 3, 5, 8} {
			if transport == "shm" && n != 3 {
				continue
			}
			t.Run(fmt.Sprintf("%s/n=%d", transport, n), func(t *testing.T) {
				check(t, run(background(t), open(t, n), func(ctx context.Context, w *libmalt.World) error {
					rnd := rand.New(rand.NewPCG(3, uint64(w.Rank())))
					for _, arrays := range shapesInPlace(n) {
						v, err := w.NewVector(ctx, arrays, "", "start=own")
						if err != nil {
							return err
						}
						for _, op := range []reduce.Op{reduce.Mean, reduce.Sum, reduce.Min, reduce.Max} {
							randomize(v, arrays, rnd)
							all := make([][][]byte, len(arrays)) // by array and rank
							for i := range arrays {
								if all[i], err = w.AllGather(ctx, v.Array(i)); err != nil {
									return err
								}
							}
							if err := v.AllReduce(ctx, op.String()); err != nil {
								return err
							}
							for i, a := range arrays {
								want := make([]byte, len(v.Array(i)))
								reduce.Fold(op, a.DType, want, all[i], nil)
								if !bytes.Equal(v.Array(i), want) {
									return fmt.Errorf("%v, %v: array %d differs", arrays, op, i)
								}
							}
						}
						if err := v.Close(); err != nil {
							return err
						}
					}
					return nil
				}))
			})
		}
	}
}

// TestReducingGivenUp: rank 0 tries some times, then makes the call once more or gives
// it up, while the others come sooner or later. They have the sum, or hear that rank 0
// gave the call up; the next call finds all in step, and the arrays left alone.
func TestReducingGivenUp(t *testing.T) {
	for transport, open := range transports() {
		t.Run(transport, func(t *testing.T) {
			check(t, run(background(t), open(t, 3), func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, inPlaceCount, "start=own")
				if err != nil {
					return err
				}
				for i := range 100 {
					fill(v.Bytes(), float32(w.Rank()+1))
					call := routetest.Hold(func(ctx context.Context) error { return v.AllReduce(ctx, "sum") })
					var waits, err error
					if w.Rank() == 0 {
						waits, err = call.Step()
						for steps := i % 5; steps > 0 && waits != nil; steps-- {
							waits, err = call.Step()
						}
					}
					givesUp := i%2 > 0
					switch {
					case w.Rank() == 0 && waits == nil:
					case w.Rank() == 0 && givesUp:
						err = wantErr(call.GiveUp(), libmalt.ErrTimeout)
					default:
						if err = call.Finish(ctx); err == nil {
							var sum float32
							if sum, err = constant(v.Bytes()); err == nil && sum != 6 {
								err = fmt.Errorf("sum %v, want 6", sum)
							}
						}
						if givesUp && errors.Is(err, libmalt.ErrLeft) {
							err = nil
						}
					}
					if err != nil {
						return fmt.Errorf("round %d: %w", i, err)
					}
					if err := v.Broadcast(ctx, 1); err != nil {
						return err
					}
					// Whoever folds late would do so into what comes now.
					fill(v.Bytes(), 7)
					if err := w.Barrier(ctx); err != nil {
						return err
					}
					if x, err := constant(v.Bytes()); err != nil || x != 7 {
						return fmt.Errorf("round %d: %v (%v) is written into an array after another call", i, x, err)
					}
				}
				return nil
			}))
		})
	}
}

// TestReducingOfAnotherVector: ranks that do not mean the same vector hear so at once.
func TestReducingOfAnotherVector(t *testing.T) {
	for transport, open := range transports() {
		if transport == "tcp" { // where nothing is in place
			continue
		}
		for _, size := range []int{2, 3} {
			t.Run(fmt.Sprintf("%s, %d ranks", transport, size), func(t *testing.T) {
				check(t, run(background(t), open(t, size), func(ctx context.Context, w *libmalt.World) error {
					var both [2]*libmalt.Vector
					for i, name := range []string{"a", "b"} {
						v, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: inPlaceCount}}, name, "start=own")
						if err != nil {
							return err
						}
						both[i] = v
					}
					for range 20 {
						if err := both[min(w.Rank(), 1)].AllReduce(ctx, "sum"); !errors.Is(err, libmalt.ErrMismatch) && !errors.Is(err, libmalt.ErrLeft) {
							return fmt.Errorf("got %w, want that the calls differ", err)
						}
					}
					return w.Barrier(ctx)
				}))
			})
		}
	}
}

// TestReducingDeath: a rank that dies when it has arrived ends the wait of the others.
func TestReducingDeath(t *testing.T) {
	over := make(chan struct{})
	job(t, 3, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, inPlaceCount, "")
		if err != nil {
			return err
		}
		switch w.Rank() {
		case 0:
			defer close(over)
			return wantDeath(v.AllReduce(ctx, "sum"), 1)
		case 1:
			call := routetest.Hold(func(ctx context.Context) error { return v.AllReduce(ctx, "sum") })
			waits, _ := call.Step()
			if err := wantErr(waits, libmalt.ErrTimeout); err != nil {
				return err
			}
			w.Abort(rdma.HasFailed(w.Rank(), "killed by a test"))
			_ = call.GiveUp()
		default:
			<-over
		}
		return nil
	})
}

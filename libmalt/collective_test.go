package libmalt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"malt/libmalt"
	"malt/libmalt/routetest"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

func TestBarrierHoldsUntilAllAreThere(t *testing.T) {
	eachSize(t, func(t *testing.T, n int) {
		var arrived atomic.Int64
		job(t, n, func(ctx context.Context, w *libmalt.World) error {
			for round := 1; round <= 20; round++ {
				arrived.Add(1)
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				if got := arrived.Load(); got < int64(round*n) {
					return fmt.Errorf("round %d: left the barrier when %d of %d had arrived", round, got, round*n)
				}
			}
			return nil
		})
	})
}

// TestAllGather sends lengths around the borders: nothing, what travels with the
// header, one chunk, several.
func TestAllGather(t *testing.T) {
	lengths := []int{0, 1, 64 << 10, 64<<10 + 1, 256 << 10, 3<<20 + 7}
	eachSize(t, func(t *testing.T, n int) {
		data := func(rank, i int) []byte {
			return bytes.Repeat([]byte{byte(rank + 1)}, lengths[(rank+i)%len(lengths)])
		}
		job(t, n, func(ctx context.Context, w *libmalt.World) error {
			for i := range lengths {
				parts, err := w.AllGather(ctx, data(w.Rank(), i))
				if err != nil {
					return err
				}
				for r, p := range parts {
					if !bytes.Equal(p, data(r, i)) {
						return fmt.Errorf("from rank %d: %d bytes, want %d", r, len(p), len(data(r, i)))
					}
				}
			}
			return nil
		})
	})
}

func TestBroadcast(t *testing.T) {
	eachSize(t, func(t *testing.T, n int) {
		job(t, n, func(ctx context.Context, w *libmalt.World) error {
			for root := range n {
				want := bytes.Repeat([]byte{byte(root)}, root*300_000)
				got, err := w.Broadcast(ctx, bytes.Repeat([]byte{byte(w.Rank())}, w.Rank()*300_000), root)
				if err != nil {
					return err
				}
				if !bytes.Equal(got, want) {
					return fmt.Errorf("root %d: got %d bytes", root, len(got))
				}
			}
			_, err := w.Broadcast(ctx, nil, n)
			return wantErr(err, libmalt.ErrInvalid)
		})
	})
}

// TestAllReduceSameBitsEverywhere compares the ranks' results bit for bit, and
// with a plain loop over integer values, where order does not matter.
func TestAllReduceSameBitsEverywhere(t *testing.T) {
	eachSize(t, func(t *testing.T, n int) {
		for _, count := range []int{0, 1, 1000, 16 << 10, 200_003} {
			results := make([][]byte, n)
			job(t, n, func(ctx context.Context, w *libmalt.World) error {
				b := make([]byte, 4*count)
				for i := range count {
					binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(float32(math.Sin(float64(i*n+w.Rank())))))
				}
				results[w.Rank()] = b
				return w.AllReduce(ctx, b, libmalt.Float32, "mean")
			})
			for r := range results {
				if !bytes.Equal(results[r], results[0]) {
					t.Errorf("count %d: rank %d has other bits than rank 0", count, r)
				}
			}
		}
		for op, want := range map[string]float64{
			"sum": float64(n * (n + 1) / 2), "min": 1, "max": float64(n), "mean": float64(n+1) / 2,
		} {
			job(t, n, func(ctx context.Context, w *libmalt.World) error {
				b := make([]byte, 8)
				binary.LittleEndian.PutUint64(b, math.Float64bits(float64(w.Rank()+1)))
				if err := w.AllReduce(ctx, b, libmalt.Float64, op); err != nil {
					return err
				}
				if got := math.Float64frombits(binary.LittleEndian.Uint64(b)); got != want {
					return fmt.Errorf("%s: got %v, want %v", op, got, want)
				}
				return nil
			})
		}
	})
}

// TestAllReduceOfManyArrays: the description of a vector of thousands of arrays
// does not fit a message, and need not.
func TestAllReduceOfManyArrays(t *testing.T) {
	arrays := make([]libmalt.Array, 8000)
	for i := range arrays {
		arrays[i] = libmalt.Array{DType: []libmalt.DType{libmalt.Float32, libmalt.Float64}[i%2], Count: 1}
	}
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		v, err := w.NewVector(ctx, arrays, "", "")
		if err != nil {
			return err
		}
		fill(v.Array(7998), float32(w.Rank()))
		if err := v.AllReduce(ctx, "sum"); err != nil {
			return err
		}
		if got := at(v.Array(7998), 0); got != 1 {
			return fmt.Errorf("got %v, want 1", got)
		}
		return nil
	})
}

func TestAllReduceRefuses(t *testing.T) {
	job(t, 1, func(ctx context.Context, w *libmalt.World) error {
		return errors.Join(
			wantErr(w.AllReduce(ctx, make([]byte, 6), libmalt.Float32, "mean"), libmalt.ErrInvalid),
			wantErr(w.AllReduce(ctx, make([]byte, 8), 9, "mean"), libmalt.ErrInvalid),
			wantErr(w.AllReduce(ctx, make([]byte, 8), libmalt.Float32, "replace"), libmalt.ErrInvalid),
			wantErr(w.AllReduce(ctx, make([]byte, 8), libmalt.Float32, "maen"), libmalt.ErrInvalid),
			wantErr(w.AllReduceArray(ctx, make([]byte, 8), libmalt.Array{DType: libmalt.Float32, Count: 2, Shape: []int{3}}, "mean"), libmalt.ErrInvalid),
		)
	})
}

// TestAllReduceOfDifferentShapes: both are named, and what is alike is combined.
func TestAllReduceOfDifferentShapes(t *testing.T) {
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		data := make([]byte, 6*4)
		fill(data, float32(w.Rank()))
		shape := []int{2, 3}
		if err := w.AllReduceArray(ctx, data, libmalt.Array{DType: libmalt.Float32, Count: 6, Shape: shape}, "sum"); err != nil || at(data, 5) != 1 {
			return fmt.Errorf("alike: %v, %v", at(data, 5), err)
		}
		if w.Rank() == 1 {
			shape = []int{3, 2}
		}
		err := w.AllReduceArray(ctx, data, libmalt.Array{DType: libmalt.Float32, Count: 6, Shape: shape}, "sum")
		if errors.Is(err, libmalt.ErrLeft) { // the other rank has seen it first
			return nil
		}
		if !errors.Is(err, libmalt.ErrMismatch) || !strings.Contains(err.Error(), "(float32[2x3], ") || !strings.Contains(err.Error(), "(float32[3x2], ") {
			return fmt.Errorf("got %v", err)
		}
		return nil
	})
}

// TestDifferentCallsAreNamedOnAllRanks: rank 0 is in a barrier, the others in an
// allreduce.
func TestDifferentCallsAreNamedOnAllRanks(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		errs := jobErrors(t, n, func(ctx context.Context, w *libmalt.World) error {
			if w.Rank() == 0 {
				return w.Barrier(ctx)
			}
			return w.AllReduce(ctx, make([]byte, 1<<20), libmalt.Float32, "sum")
		})
		for r, err := range errs {
			if !errors.Is(err, libmalt.ErrMismatch) && !errors.Is(err, libmalt.ErrLeft) {
				t.Errorf("n=%d rank %d: got %v", n, r, err)
			}
		}
		if err := errs[0]; !errors.Is(err, libmalt.ErrMismatch) || !strings.Contains(err.Error(), "barrier") || !strings.Contains(err.Error(), `malt.allreduce(float32[262144], "sum")`) {
			t.Errorf("n=%d rank 0: %v, want both calls named", n, err)
		}
	}
}

// TestCollectiveOfARankThatHasEnded fails on those that need it.
func TestCollectiveOfARankThatHasEnded(t *testing.T) {
	errs := jobErrors(t, 3, func(ctx context.Context, w *libmalt.World) error {
		if w.Rank() == 1 {
			return nil
		}
		return w.Barrier(ctx)
	})
	if errs[1] != nil {
		t.Error(errs[1])
	}
	for _, r := range []int{0, 2} {
		if err := errs[r]; !errors.Is(err, libmalt.ErrLeft) {
			t.Errorf("rank %d: got %v, want that a rank has ended", r, err)
		}
	}
}

// TestCollectiveOfARankThatServes fails at once, also where a rank that has ended stays in the job for what others
// still change. In virtual time.
func TestCollectiveOfARankThatServes(t *testing.T) {
	for _, graph := range []string{"butterfly", "shards:1", "shards:2/1"} {
		t.Run(graph, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check(t, run(t.Context(), inmem.New(4), func(ctx context.Context, w *libmalt.World) error {
					v, array, err := numbers(ctx, w, 4, 0, "fold=sum-changes consistency=ssp:0 graph="+graph)
					if w.Rank() == 2 || err != nil {
						return err
					}
					time.Sleep(time.Second)
					begun := time.Now()
					err = v.AllReduce(ctx, "sum-changes")
					if took := time.Since(begun); took > time.Second || err == nil || !strings.Contains(err.Error(), "rank 2 has ended") {
						return fmt.Errorf("after %v: %v", took, err)
					}
					array[0]++
					if _, err = v.Sync(ctx, 1); err == nil && array[0] != 3 {
						err = fmt.Errorf("the sum is %v", array[0])
					}
					return err
				}))
			})
		})
	}
}

// TestCollectiveOfARankThatEndedFirst names the rank that the one that it missed had
// missed itself.
func TestCollectiveOfARankThatEndedFirst(t *testing.T) {
	ended := make(chan struct{})
	errs := jobErrors(t, 3, func(ctx context.Context, w *libmalt.World) error {
		switch w.Rank() {
		case 2:
			return nil
		case 1:
			defer close(ended)
			if err := w.Barrier(ctx); err == nil {
				t.Error("rank 1 missed nobody")
			}
			return w.Close()
		}
		<-ended
		return w.Barrier(ctx)
	})
	if err := errs[0]; !errors.Is(err, libmalt.ErrLeft) || !strings.Contains(err.Error(), "rank 2 has ended") {
		t.Errorf("rank 0: got %v, want that rank 2 has ended", err)
	}
}

func TestCollectiveOfADeadRank(t *testing.T) {
	errs := jobErrors(t, 3, func(ctx context.Context, w *libmalt.World) error {
		if w.Rank() == 1 {
			w.Abort(rdma.HasFailed(w.Rank(), "division by zero"))
			return nil
		}
		return w.Barrier(ctx)
	})
	for _, r := range []int{0, 2} {
		var dead *rdma.PeerError
		if err := errs[r]; !errors.As(err, &dead) || dead.Rank != 1 || !strings.Contains(err.Error(), "division by zero") {
			t.Errorf("rank %d: got %v, want the death of rank 1 with its reason", r, err)
		}
	}
}

// TestWaitForRoomNamesTheRank: rank 1 has sent its part and takes nothing.
func TestWaitForRoomNamesTheRank(t *testing.T) {
	sent, over := make(chan struct{}), make(chan struct{})
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		if w.Rank() == 1 {
			call := routetest.Hold(func(ctx context.Context) error { _, err := w.AllGather(ctx, nil); return err })
			waits, _ := call.Step()
			close(sent)
			<-over
			return errors.Join(wantErr(waits, libmalt.ErrTimeout), wantErr(call.GiveUp(), libmalt.ErrTimeout))
		}
		defer close(over)
		<-sent
		_, err := w.AllGather(routetest.Tried(), make([]byte, 8<<20))
		if err := wantErr(err, libmalt.ErrTimeout); err != nil {
			return err
		}
		if want := "waited for rank 1 (waiting in a collective call) to take what was sent"; !strings.Contains(err.Error(), want) {
			return fmt.Errorf("%q does not say %q", err, want)
		}
		return nil
	})
}

// TestTimeoutTellsTheOthers: rank 0 gives up a call; the others, which had
// its arrival or not, go on to the next call together.
func TestTimeoutTellsTheOthers(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		gate := make(chan struct{})
		job(t, n, func(ctx context.Context, w *libmalt.World) error {
			data := make([]byte, 4<<20) // more than the queue takes: rank 0 cannot have sent it all
			if w.Rank() == 0 {
				short, stop := context.WithTimeout(ctx, time.Millisecond)
				defer stop()
				if err := wantErr(w.AllReduce(short, data, libmalt.Float32, "sum"), libmalt.ErrTimeout); err != nil {
					return err
				}
				close(gate)
			} else {
				<-gate
				if err := wantErr(w.AllReduce(ctx, data, libmalt.Float32, "sum"), libmalt.ErrLeft); err != nil {
					return err
				}
			}
			parts, err := w.AllGather(ctx, []byte{byte(w.Rank())})
			for r, p := range parts {
				if len(p) != 1 || int(p[0]) != r {
					err = fmt.Errorf("after the call that was given up: rank %d gave %v", r, p)
				}
			}
			return err
		})
	}
}

package libmalt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"malt/graphs"
	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/inmem"
)

// TestSyncIsTheMeanOfTheGraph holds every graph in bsp against a naive twin:
// integer values, so that the mean of up to 8 needs no rounding of the sum.
func TestSyncIsTheMeanOfTheGraph(t *testing.T) {
	for _, graph := range []string{"all", "ring", "chord", "halton", "star", "one-peer", "random:1"} {
		eachSize(t, func(t *testing.T, n int) {
			if n == 1 && graph == "random:1" {
				return
			}
			g, err := graphs.Parse(graph, n)
			if err != nil {
				t.Fatal(err)
			}
			options := "graph=" + graph + " allow_disconnected=true"
			job(t, n, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 100, options)
				if err != nil {
					return err
				}
				for clock := uint64(1); clock <= 12; clock++ {
					value := func(r int) float32 { return float32(r*100) + float32(clock) }
					fill(v.Bytes(), value(w.Rank()))
					k, err := v.Sync(ctx, 1)
					if err != nil {
						return err
					}
					sum, senders := value(w.Rank()), g.Senders(w.Rank(), clock)
					for _, s := range senders {
						sum += value(s)
					}
					got, err := constant(v.Bytes())
					if err != nil {
						return err
					}
					if want := sum / float32(len(senders)+1); got != want || k != len(senders) {
						return fmt.Errorf("%s clock %d: got %v of %d updates, want %v of %d", graph, clock, got, k, want, len(senders))
					}
				}
				return nil
			})
		})
	}
}

// TestG1WorldOfOneChangesNothing: every mode and fold leaves the values as they
// are, bit for bit.
func TestG1WorldOfOneChangesNothing(t *testing.T) {
	job(t, 1, func(ctx context.Context, w *libmalt.World) error {
		for _, mode := range []string{"bsp", "async", "ssp:3", "notify-ack:2"} {
			for _, fold := range []string{"mean", "mean-received", "sum", "min", "max", "replace"} {
				v, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float64, Count: 3}}, "", "consistency="+mode+" fold="+fold)
				if err != nil {
					return err
				}
				for i := range 3 {
					binary.LittleEndian.PutUint64(v.Bytes()[8*i:], math.Float64bits(math.Sqrt(float64(i+2))))
				}
				before := bytes.Clone(v.Bytes())
				for range 5 {
					if k, err := v.Sync(ctx, 0.5); err != nil || k != 0 {
						return fmt.Errorf("%s %s: folded %d, %v", mode, fold, k, err)
					}
				}
				if err := v.AllReduce(ctx, "mean"); err != nil {
					return err
				}
				if !bytes.Equal(before, v.Bytes()) {
					return fmt.Errorf("%s %s changed the values", mode, fold)
				}
				if err := v.Close(); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// TestBSPSameBitsOnAllRanks: an inexact mean over all is the same on every rank,
// and in every run.
func TestBSPSameBitsOnAllRanks(t *testing.T) {
	eachSize(t, func(t *testing.T, n int) {
		var first []byte
		for range 3 {
			results := make([][]byte, n)
			job(t, n, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 4099, "start=own")
				if err != nil {
					return err
				}
				for i := range 4099 {
					binary.LittleEndian.PutUint32(v.Bytes()[4*i:], math.Float32bits(float32(math.Sin(float64(i*n+w.Rank())))))
				}
				for range 5 {
					if _, err := v.Sync(ctx, 1); err != nil {
						return err
					}
					for i := 0; i < 4099; i += 7 { // drift apart again
						binary.LittleEndian.PutUint32(v.Bytes()[4*i:], math.Float32bits(at(v.Bytes(), i)*float32(w.Rank()+2)/3))
					}
				}
				if _, err := v.Sync(ctx, 1); err != nil {
					return err
				}
				results[w.Rank()] = bytes.Clone(v.Bytes())
				return nil
			})
			if first == nil {
				first = results[0]
			}
			for r := range results {
				if !bytes.Equal(results[r], first) {
					t.Errorf("rank %d has other bits", r)
				}
			}
		}
	})
}

// TestWeightedMean: own by the weight of its last scatter, the others by theirs.
func TestWeightedMean(t *testing.T) {
	job(t, 3, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "")
		if err != nil {
			return err
		}
		r := float32(w.Rank())
		fill(v.Bytes(), r+1)
		if _, err := v.Sync(ctx, float64(r)); err != nil { // weights 0, 1, 2
			return err
		}
		if got, want := at(v.Bytes(), 9), float32(2*1+3*2)/3; got != want {
			return fmt.Errorf("got %v, want %v", got, want)
		}
		fill(v.Bytes(), r+1)
		if _, err := v.Scatter(ctx, nil, float64(r)); err != nil {
			return err
		}
		if _, err := v.Gather(ctx, "mean-received"); err != nil {
			return err
		}
		want := []float32{(2*1 + 3*2) / 3., 3 * 2 / 2., 2}[w.Rank()]
		if got := at(v.Bytes(), 0); got != want {
			return fmt.Errorf("mean-received: got %v, want %v", got, want)
		}
		for _, bad := range []float64{-1, math.NaN(), math.Inf(1)} {
			_, err := v.Scatter(ctx, nil, bad)
			if err := wantErr(err, libmalt.ErrInvalid); err != nil {
				return err
			}
		}
		return nil
	})
}

// TestFolds: one step of each built-in fold over three ranks with values 1, 2, 4.
func TestFolds(t *testing.T) {
	value := []float32{1, 2, 4}
	want := map[string][3]float32{
		"mean": {7. / 3, 7. / 3, 7. / 3}, "mean-received": {3, 2.5, 1.5}, "sum": {7, 7, 7},
		"min": {1, 1, 1}, "max": {4, 4, 4}, "replace": {2, 1, 1}, // equally new: the lowest rank
	}
	for fold, want := range want {
		job(t, 3, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 5, "start=own fold="+fold)
			if err != nil {
				return err
			}
			fill(v.Bytes(), value[w.Rank()])
			if _, err := v.Sync(ctx, 1); err != nil {
				return err
			}
			if got, err := constant(v.Bytes()); got != want[w.Rank()] || err != nil {
				return fmt.Errorf("%s: got %v, want %v (%v)", fold, got, want[w.Rank()], err)
			}
			return nil
		})
	}
}

// TestReplaceTakesTheNewest: the update with the largest clock overwrites.
func TestReplaceTakesTheNewest(t *testing.T) {
	job(t, 3, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 5, "consistency=async fold=replace start=own")
		if err != nil {
			return err
		}
		for i := range []int{0, 2, 3}[w.Rank()] {
			fill(v.Bytes(), float32(10*w.Rank()+i))
			if _, err := v.Scatter(ctx, nil, 1); err != nil {
				return err
			}
		}
		if w.Rank() == 0 { // the others are done when their bytes come
			if _, err := waitUpdates(ctx, v, map[int]uint64{1: 2, 2: 3}); err != nil {
				return err
			}
			if got := at(v.Bytes(), 0); got != 22 {
				return fmt.Errorf("got %v, want the third update of rank 2", got)
			}
		}
		_, err = w.AllGather(ctx, nil)
		return err
	})
}

// waitUpdates gathers until each rank's update of the given clock has come,
// and folds those last ones together.
func waitUpdates(ctx context.Context, v *libmalt.Vector, clocks map[int]uint64) (int, error) {
	for {
		us, err := v.Begin(ctx)
		if err != nil {
			return 0, err
		}
		found := 0
		for _, u := range us {
			if u.Clock == clocks[u.Rank] {
				found++
			}
		}
		if err := v.End(false); err != nil { // they come again
			return 0, err
		}
		if found == len(clocks) {
			return v.Gather(ctx, "")
		}
		if err := ctx.Err(); err != nil {
			return 0, err
		}
	}
}

// TestArraysTravelAsOne: float32 and float64 arrays of odd lengths in one
// vector, through sync and allreduce.
func TestArraysTravelAsOne(t *testing.T) {
	arrays := []libmalt.Array{
		{DType: libmalt.Float32, Count: 3}, {DType: libmalt.Float64, Count: 70_001}, {DType: libmalt.Float32, Count: 0},
		{DType: libmalt.Float32, Count: 1}, {DType: libmalt.Float64, Count: 5}, {DType: libmalt.Float32, Count: 300_001},
	}
	eachSize(t, func(t *testing.T, n int) {
		job(t, n, func(ctx context.Context, w *libmalt.World) error {
			v, err := w.NewVector(ctx, arrays, "", "start=own")
			if err != nil {
				return err
			}
			set := func(x float64) {
				for i, a := range arrays {
					b := v.Array(i)
					for j := range a.Count {
						if a.DType == libmalt.Float32 {
							binary.LittleEndian.PutUint32(b[4*j:], math.Float32bits(float32(x+float64(i))))
						} else {
							binary.LittleEndian.PutUint64(b[8*j:], math.Float64bits(x+float64(i)))
						}
					}
				}
			}
			check := func(x float64) error {
				got := bytes.Clone(v.Bytes())
				set(x)
				if !bytes.Equal(got, v.Bytes()) {
					return fmt.Errorf("not every element is %v plus its array's number", x)
				}
				return nil
			}
			mean := float64(n-1) / 2
			set(float64(w.Rank()))
			if _, err := v.Sync(ctx, 1); err != nil {
				return err
			}
			if err := check(mean); err != nil {
				return err
			}
			set(float64(w.Rank()))
			if err := v.AllReduce(ctx, "mean"); err != nil {
				return err
			}
			if err := check(mean); err != nil {
				return err
			}
			set(float64(w.Rank()))
			if err := v.Broadcast(ctx, n-1); err != nil {
				return err
			}
			return check(float64(n - 1))
		})
	})
}

// TestStartSameOrOwn: by default every rank begins with rank 0's values.
func TestStartSameOrOwn(t *testing.T) {
	job(t, 3, func(ctx context.Context, w *libmalt.World) error {
		init := make([]byte, 40)
		fill(init, float32(w.Rank()+5))
		for _, c := range []struct {
			start string
			want  float32
		}{{"same", 5}, {"own", float32(w.Rank() + 5)}} {
			v, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: 10, Init: init}}, "", "start="+c.start)
			if err != nil {
				return err
			}
			if got, err := constant(v.Bytes()); err != nil || got != c.want {
				return fmt.Errorf("start=%s: got %v, want %v (%v)", c.start, got, c.want, err)
			}
		}
		return nil
	})
}

// TestRanksThatMakeDifferentVectors all hear of it, with both descriptions, and
// can go on.
func TestRanksThatMakeDifferentVectors(t *testing.T) {
	cases := map[string]func(ctx context.Context, w *libmalt.World, odd bool) error{
		"length": func(ctx context.Context, w *libmalt.World, odd bool) error {
			n := 10
			if odd {
				n = 11
			}
			_, err := vector(ctx, w, n, "")
			return err
		},
		"dtype": func(ctx context.Context, w *libmalt.World, odd bool) error {
			d := libmalt.Float32
			if odd {
				d = libmalt.Float64
			}
			_, err := w.NewVector(ctx, []libmalt.Array{{DType: d, Count: 10}}, "v", "")
			return err
		},
		"graph": func(ctx context.Context, w *libmalt.World, odd bool) error {
			g := "graph=all"
			if odd {
				g = "graph=ring"
			}
			_, err := vector(ctx, w, 10, g)
			return err
		},
		"consistency": func(ctx context.Context, w *libmalt.World, odd bool) error {
			c := "consistency=ssp:1"
			if odd {
				c = "consistency=ssp:2"
			}
			_, err := vector(ctx, w, 10, c)
			return err
		},
		"name": func(ctx context.Context, w *libmalt.World, odd bool) error {
			name := "left"
			if odd {
				name = "right"
			}
			_, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: 10}}, name, "")
			return err
		},
		"kind": func(ctx context.Context, w *libmalt.World, odd bool) error {
			if odd {
				_, err := w.NewSegment(ctx, 40, "v", "")
				return err
			}
			_, err := vector(ctx, w, 10, "")
			return err
		},
	}
	for name, make := range cases {
		t.Run(name, func(t *testing.T) {
			job(t, 3, func(ctx context.Context, w *libmalt.World) error {
				err := make(ctx, w, w.Rank() == 2)
				if !errors.Is(err, libmalt.ErrMismatch) && !errors.Is(err, libmalt.ErrLeft) {
					return fmt.Errorf("got %v", err)
				}
				if w.Rank() == 2 && !errors.Is(err, libmalt.ErrMismatch) {
					return fmt.Errorf("the odd one out got %v", err)
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				v, err := vector(ctx, w, 10, "")
				if err != nil {
					return err
				}
				_, err = v.Sync(ctx, 1)
				return err
			})
		})
	}
}

// TestUnevenShardsDoNotHang is the join rule: rank r syncs r+1 times, then all
// meet in an allreduce, and once more after that.
func TestUnevenShardsDoNotHang(t *testing.T) {
	for _, consistency := range []string{"bsp", "async", "ssp:0", "ssp:2", "notify-ack:1", "notify-ack:3"} {
		for _, graph := range []string{"all", "halton", "ring", "one-peer"} {
			t.Run(consistency+"/"+graph, func(t *testing.T) {
				eachSize(t, func(t *testing.T, n int) {
					job(t, n, func(ctx context.Context, w *libmalt.World) error {
						v, err := vector(ctx, w, 100, "consistency="+consistency+" graph="+graph)
						if err != nil {
							return err
						}
						for round := range 3 {
							for range 3 * ((w.Rank()+round)%n + 1) {
								fill(v.Bytes(), float32(w.Rank()))
								if _, err := v.Sync(ctx, 1); err != nil {
									return err
								}
								if _, err := constant(v.Bytes()); err != nil {
									return err
								}
							}
							fill(v.Bytes(), float32(w.Rank()))
							if err := v.AllReduce(ctx, "mean"); err != nil {
								return err
							}
							if got, want := at(v.Bytes(), 50), float32(n-1)/2; got != want {
								return fmt.Errorf("after the allreduce: %v, want %v", got, want)
							}
							if got, want := v.Clock(), uint64(3*n*(round+1)); got != want {
								return fmt.Errorf("round %d: clock %d after levelling, want %d", round, got, want)
							}
						}
						return nil
					})
				})
			})
		}
	}
}

// TestEndingRanksAreNotWaitedFor: rank r leaves the job after r+1 syncs.
func TestEndingRanksAreNotWaitedFor(t *testing.T) {
	for _, consistency := range []string{"bsp", "async", "ssp:1", "notify-ack:1", "notify-ack:2"} {
		t.Run(consistency, func(t *testing.T) {
			eachSize(t, func(t *testing.T, n int) {
				job(t, n, func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, 10, "consistency="+consistency)
					for i := 0; i <= 2*w.Rank() && err == nil; i++ {
						_, err = v.Sync(ctx, 1)
					}
					return err
				})
			})
		})
	}
}

// TestClosingRanksAreNotWaitedFor: rank r closes the vector after r+1 syncs and
// stays in the job until all are through.
func TestClosingRanksAreNotWaitedFor(t *testing.T) {
	for _, options := range []string{"consistency=bsp graph=ring", "consistency=bsp", "consistency=ssp:1", "consistency=notify-ack:1"} {
		t.Run(options, func(t *testing.T) {
			eachSize(t, func(t *testing.T, n int) {
				job(t, n, func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, 10, options)
					for i := 0; i <= 2*w.Rank() && err == nil; i++ {
						_, err = v.Sync(ctx, 1)
					}
					if err != nil {
						return err
					}
					return errors.Join(v.Close(), w.Barrier(ctx))
				})
			})
		})
	}
}

// TestDeathReachesEveryWait: rank 1 dies; gathers that need it fail and say so,
// those that do not wait go on.
func TestDeathReachesEveryWait(t *testing.T) {
	for _, consistency := range []string{"bsp", "ssp:1", "notify-ack:1", "async"} {
		t.Run(consistency, func(t *testing.T) {
			errs := jobErrors(t, 3, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 10, "consistency="+consistency)
				if err != nil {
					return err
				}
				for i := range 20 {
					if i == 3 && w.Rank() == 1 {
						w.Abort("killed by a test")
						return nil
					}
					if _, err := v.Sync(ctx, 1); err != nil {
						return err
					}
				}
				return nil
			})
			for _, r := range []int{0, 2} {
				var dead *rdma.PeerError
				got := errors.As(errs[r], &dead) && dead.Rank == 1 && strings.Contains(errs[r].Error(), `vector "v"`)
				if consistency == "async" && errs[r] != nil || consistency != "async" && !got {
					t.Errorf("rank %d: %v", r, errs[r])
				}
			}
		})
	}
}

// TestTooManyScatters is an error that says so, not a wait for oneself.
func TestTooManyScatters(t *testing.T) {
	for consistency, most := range map[string]int{"bsp": 1, "notify-ack:1": 1, "notify-ack:3": 3} {
		job(t, 2, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 10, "consistency="+consistency)
			if err != nil {
				return err
			}
			for range most {
				if _, err := v.Scatter(ctx, nil, 1); err != nil {
					return err
				}
			}
			_, err = v.Scatter(ctx, nil, 1)
			if err := wantErr(err, libmalt.ErrState); err != nil {
				return err
			}
			if _, err := v.Gather(ctx, ""); err != nil {
				return err
			}
			_, err = v.Scatter(ctx, nil, 1)
			return err
		})
	}
}

// TestAheadOfGathers: a gather makes room for one more scatter, not for d: ranks
// that scatter more often than they gather would end up waiting for each other.
func TestAheadOfGathers(t *testing.T) {
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "consistency=notify-ack:3")
		if err != nil {
			return err
		}
		scatter := func() error { _, err := v.Scatter(ctx, nil, 1); return err }
		gather := func() error { _, err := v.Gather(ctx, ""); return err }
		err = errors.Join(scatter(), scatter(), scatter(), gather(), scatter())
		return errors.Join(err, wantErr(scatter(), libmalt.ErrState), gather(), scatter())
	})
}

// TestEmptyVectors go through all calls.
func TestEmptyVectors(t *testing.T) {
	for _, consistency := range modes {
		eachSize(t, func(t *testing.T, n int) {
			job(t, n, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 0, "consistency="+consistency)
				if err != nil {
					return err
				}
				for range 3 {
					if _, err := v.Sync(ctx, 1); err != nil {
						return err
					}
				}
				return errors.Join(v.AllReduce(ctx, "mean"), v.Broadcast(ctx, n-1), v.Configure(ctx, "graph=ring"), v.Close())
			})
		})
	}
}

// TestVectorsAreSentWhole, not in part as segments may be.
func TestVectorsAreSentWhole(t *testing.T) {
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "")
		if err != nil {
			return err
		}
		_, err = v.Segment.Scatter(ctx, 4, nil)
		return wantErr(err, libmalt.ErrInvalid)
	})
}

func TestGatherInBSPNeedsAScatter(t *testing.T) {
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "")
		if err != nil {
			return err
		}
		_, err = v.Gather(ctx, "")
		return wantErr(err, libmalt.ErrState)
	})
}

// TestSyncTimeoutKeepsItsPlace: the scatter of a sync that ran into its timeout
// is not made twice.
func TestSyncTimeoutKeepsItsPlace(t *testing.T) {
	for _, consistency := range []string{"bsp", "ssp:0", "notify-ack:1"} {
		gate := make(chan struct{})
		job(t, 2, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 10, "consistency="+consistency)
			if err != nil {
				return err
			}
			if w.Rank() == 1 {
				<-gate
				_, err := v.Sync(ctx, 1)
				return err
			}
			for range 3 {
				short, stop := context.WithTimeout(ctx, time.Millisecond)
				_, err := v.Sync(short, 1)
				stop()
				if err := wantErr(err, libmalt.ErrTimeout); err != nil {
					return err
				}
				if !strings.Contains(err.Error(), "rank 1 (") {
					return fmt.Errorf("%q does not say where rank 1 is", err)
				}
				_, err = v.Gather(ctx, "")
				if err := wantErr(err, libmalt.ErrBusy); err != nil {
					return err
				}
			}
			close(gate)
			k, err := v.Sync(ctx, 1)
			if err == nil && (k != 1 || v.Clock() != 1) {
				err = fmt.Errorf("%s: folded %d at clock %d, want 1 at 1", consistency, k, v.Clock())
			}
			return err
		})
	}
}

// TestCancelledGatherCanBeMadeAgain.
func TestCancelledGatherCanBeMadeAgain(t *testing.T) {
	gate := make(chan struct{})
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "")
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			<-gate
			_, err := v.Sync(ctx, 1)
			return err
		}
		short, stop := context.WithTimeout(ctx, time.Millisecond)
		defer stop()
		_, err = v.Sync(short, 1)
		if err := wantErr(err, libmalt.ErrTimeout); err != nil {
			return err
		}
		if err := v.Cancel(); err != nil {
			return err
		}
		close(gate)
		_, err = v.Gather(ctx, "")
		return err
	})
}

// TestFoldOfTheUsers: Begin holds off other calls, End(false) gives the same
// updates again.
func TestFoldOfTheUsers(t *testing.T) {
	for _, consistency := range []string{"bsp", "ssp:0", "notify-ack:1"} {
		job(t, 4, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 10, "start=own consistency="+consistency)
			if err != nil {
				return err
			}
			fill(v.Bytes(), float32(w.Rank()))
			if _, err := v.Scatter(ctx, nil, float64(w.Rank()+1)); err != nil {
				return err
			}
			for range 3 {
				us, err := v.Begin(ctx)
				if err != nil {
					return err
				}
				if len(us) != 3 || !slices.IsSortedFunc(us, func(a, b libmalt.Update) int { return a.Rank - b.Rank }) {
					return fmt.Errorf("got %d updates %v, want 3 in the order of ranks", len(us), us)
				}
				for _, u := range us {
					if x, err := constant(u.Data); err != nil || x != float32(u.Rank) || u.Weight != float64(u.Rank+1) || u.Clock != 1 || u.Age != 0 {
						return fmt.Errorf("update %+v of value %v (%v)", u, x, err)
					}
				}
				_, scatter := v.Scatter(ctx, nil, 1)
				_, gather := v.Gather(ctx, "")
				_, begin := v.Begin(ctx)
				_, sync := v.Sync(ctx, 1)
				_, stats := v.Stats()
				for _, err := range []error{scatter, gather, begin, sync, stats, v.AllReduce(ctx, "mean"), v.Configure(ctx, "graph=ring"), v.Close()} {
					if err := wantErr(err, libmalt.ErrBusy); err != nil {
						return err
					}
				}
				if err := v.End(false); err != nil {
					return err
				}
			}
			k, err := v.Gather(ctx, "sum")
			if err == nil && (k != 3 || at(v.Bytes(), 3) != 6) {
				err = fmt.Errorf("%s: folded %d to %v", consistency, k, at(v.Bytes(), 3))
			}
			return errors.Join(err, wantErr(v.End(true), libmalt.ErrState))
		})
	}
}

// TestConfigure goes through all modes and graphs with one vector.
func TestConfigure(t *testing.T) {
	eachSize(t, func(t *testing.T, n int) {
		job(t, n, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 100, "")
			if err != nil {
				return err
			}
			for _, options := range []string{"consistency=async", "graph=ring consistency=notify-ack", "graph=halton consistency=ssp:1 fold=max", "consistency=bsp graph=all fold=mean"} {
				for range 5 {
					fill(v.Bytes(), float32(w.Rank()))
					if _, err := v.Sync(ctx, 1); err != nil {
						return fmt.Errorf("before %s: %w", options, err)
					}
				}
				if err := v.Configure(ctx, options); err != nil {
					return err
				}
			}
			if got, want := v.Describe(), "name=v graph=all consistency=bsp fold=mean"; got != want {
				return fmt.Errorf("Describe: %q, want %q", got, want)
			}
			before := v.Describe()
			if err := wantErr(v.Configure(ctx, "graph=rign"), libmalt.ErrInvalid); err != nil {
				return err
			}
			if err := wantErr(v.Configure(ctx, "start=own"), libmalt.ErrInvalid); err != nil {
				return err
			}
			fill(v.Bytes(), float32(w.Rank()))
			if _, err := v.Sync(ctx, 1); err != nil || v.Describe() != before {
				return fmt.Errorf("after a refused configuration: %v", err)
			}
			if got := at(v.Bytes(), 0); got != float32(n-1)/2 {
				return fmt.Errorf("got %v", got)
			}
			return nil
		})
	})
}

// TestPaperBytesAllOverHalton counts at the transport: with 8 ranks in async an
// all-to-all exchange moves 7 updates for each 3 of halton (MALT section 3.4).
func TestPaperBytesAllOverHalton(t *testing.T) {
	const length, steps = 1000, 10
	sent := map[string]uint64{}
	for _, graph := range []string{"all", "halton"} {
		ts := inmem.New(8)
		for r, err := range run(background(t), ts, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, length, "consistency=async graph="+graph)
			if err != nil {
				return err
			}
			count := func() (n uint64) {
				for peer := range 8 {
					n += w.Traffic(peer).SentBytes
				}
				return n
			}
			before, returned := count(), 0
			for range steps {
				n, err := v.Scatter(ctx, nil, 1)
				if err != nil {
					return err
				}
				returned += n
			}
			got := count() - before
			if got != uint64(returned) {
				return fmt.Errorf("%s: Scatter returned %d bytes, the transport counted %d", graph, returned, got)
			}
			if w.Rank() == 0 {
				sent[graph] = got
			}
			return w.Barrier(ctx)
		}) {
			if err != nil {
				t.Errorf("%s rank %d: %v", graph, r, err)
			}
		}
	}
	if sent["all"] != 7*4*length*steps || sent["halton"] != 3*4*length*steps {
		t.Errorf("all sent %d, halton %d bytes; want 7 : 3 of %d", sent["all"], sent["halton"], 4*length*steps)
	}
}

// TestSegmentCarriesBytes of varying length, to some receivers only.
func TestSegmentCarriesBytes(t *testing.T) {
	job(t, 4, func(ctx context.Context, w *libmalt.World) error {
		s, err := w.NewSegment(ctx, 100, "", "consistency=notify-ack")
		if err != nil {
			return err
		}
		for i := range 10 {
			n := copy(s.Bytes(), strings.Repeat(fmt.Sprint(w.Rank()), i))
			to := []int{(w.Rank() + 1) % 4}
			if sent, err := s.Scatter(ctx, n, to); err != nil || sent != n {
				return fmt.Errorf("sent %d of %d: %w", sent, n, err)
			}
			us, err := s.Begin(ctx)
			if err != nil {
				return err
			}
			from := (w.Rank() + 3) % 4
			if len(us) != 1 || us[0].Rank != from || string(us[0].Data) != strings.Repeat(fmt.Sprint(from), i) {
				return fmt.Errorf("step %d: got %v", i, us)
			}
			if err := s.End(true); err != nil {
				return err
			}
		}
		_, err = s.Scatter(ctx, 101, nil)
		return wantErr(err, libmalt.ErrInvalid)
	})
}

// TestAfterClose every call says that the object was closed; its memory stays
// until it is unmapped, once.
func TestAfterClose(t *testing.T) {
	job(t, 1, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "")
		if err != nil {
			return err
		}
		first := &v.Bytes()[0]
		if err := wantErr(w.Unmap(first), libmalt.ErrBusy); err != nil {
			return err
		}
		if err := v.Close(); err != nil {
			return err
		}
		_, scatter := v.Scatter(ctx, nil, 1)
		_, gather := v.Gather(ctx, "")
		_, sync := v.Sync(ctx, 1)
		for _, err := range []error{scatter, gather, sync, v.AllReduce(ctx, "mean"), v.Broadcast(ctx, 0), v.Configure(ctx, "graph=ring"), v.Close()} {
			if err := wantErr(err, libmalt.ErrClosed); err != nil {
				return err
			}
		}
		if _, err := v.Stats(); err != nil {
			return err
		}
		fill(v.Bytes(), 3)
		if err := w.Unmap(first); err != nil {
			return err
		}
		return wantErr(w.Unmap(first), libmalt.ErrInvalid)
	})
}

// TestScatterBarrierGather, the classic of one-sided programs: what was scattered
// before a barrier is there after it. In notify-ack it is not, and the gather says
// so in place of waiting for what will never come.
func TestScatterBarrierGather(t *testing.T) {
	for _, consistency := range []string{"async", "ssp:1", "bsp", "notify-ack:1"} {
		t.Run(consistency, func(t *testing.T) {
			eachSize(t, func(t *testing.T, n int) {
				job(t, n, func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, 10, "start=own consistency="+consistency)
					if err != nil {
						return err
					}
					for range 3 {
						fill(v.Bytes(), float32(w.Rank()))
						if _, err := v.Scatter(ctx, nil, 1); err != nil {
							return err
						}
						if err := w.Barrier(ctx); err != nil {
							return err
						}
						k, err := v.Gather(ctx, "")
						if consistency == "notify-ack:1" {
							if err := wantErr(err, libmalt.ErrState); err != nil {
								return err
							}
							continue
						}
						if err != nil {
							return err
						}
						if got := at(v.Bytes(), 3); k != n-1 || got != float32(n-1)/2 {
							return fmt.Errorf("folded %d to %v, want %d to %v", k, got, n-1, float32(n-1)/2)
						}
						if err := w.Barrier(ctx); err != nil {
							return err
						}
					}
					// The values of an allreduce are newer than anything sent before.
					if _, err := v.Scatter(ctx, nil, 1); err != nil {
						return err
					}
					if err := v.AllReduce(ctx, "mean"); err != nil {
						return err
					}
					if consistency == "async" {
						if k, err := v.Gather(ctx, ""); k != 0 || err != nil {
							return fmt.Errorf("after an allreduce: folded %d, %v", k, err)
						}
					}
					return nil
				})
			})
		})
	}
}

// TestUnevenScatterBarrierGather: ranks come to the barrier at different clocks;
// in bsp the gather after it folds those of the clock that they were levelled to.
func TestUnevenScatterBarrierGather(t *testing.T) {
	job(t, 3, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "start=own graph=ring")
		if err != nil {
			return err
		}
		for range 2 * w.Rank() {
			if _, err := v.Sync(ctx, 1); err != nil {
				return err
			}
		}
		fill(v.Bytes(), float32(w.Rank()))
		if _, err := v.Scatter(ctx, nil, 1); err != nil { // clocks 1, 3, 5
			return err
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		k, err := v.Gather(ctx, "")
		if err != nil || v.Clock() != 5 || k != []int{1, 0, 0}[w.Rank()] { // rank 0 hears from rank 2
			return fmt.Errorf("folded %d at clock %d: %w", k, v.Clock(), err)
		}
		k, err = v.Sync(ctx, 1)
		if err != nil || v.Clock() != 6 || k != 1 {
			return fmt.Errorf("then folded %d at clock %d: %w", k, v.Clock(), err)
		}
		return w.Barrier(ctx)
	})
}

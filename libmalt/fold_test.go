package libmalt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"malt/graphs"
	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
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

// TestBSPSameBitsOnAllRanks: an inexact mean over all is the same on every rank,
// and in every run.
func TestBSPSameBitsOnAllRanks(t *testing.T) {
	eachSize(t, func(t *testing.T, n int) {
		sameBits(t, n, func() []rdma.Transport { return inmem.New(n) })
	})
	for _, n := range []int{3, 5} {
		t.Run(fmt.Sprintf("tcp/n=%d", n), func(t *testing.T) {
			sameBits(t, n, func() []rdma.Transport { return overTCP(t, n) })
		})
	}
}

func sameBits(t *testing.T, n int, open func() []rdma.Transport) {
	var first []byte
	for range 3 {
		results := make([][]byte, n)
		check(t, run(background(t), open(), func(ctx context.Context, w *libmalt.World) error {
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
		}))
		if first == nil {
			first = results[0]
		}
		for r := range results {
			if !bytes.Equal(results[r], first) {
				t.Errorf("rank %d has other bits", r)
			}
		}
	}
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

package libmalt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"malt/libmalt"
	"malt/libmalt/routetest"
	"malt/rdma"
)

// shapesInPlace are arrays around the edges of parts, lines and blocks.
func shapesInPlace(n int) [][]libmalt.Array {
	var all [][]libmalt.Array
	for _, count := range []int{0, 1, 15, 16, 17, n - 1, 10_007} {
		all = append(all, []libmalt.Array{{DType: libmalt.Float32, Count: count}}, []libmalt.Array{{DType: libmalt.Float64, Count: count}})
	}
	return append(all, []libmalt.Array{
		{DType: libmalt.Float32, Count: 3}, {DType: libmalt.Float64, Count: 17}, {DType: libmalt.Float32, Count: 10_007},
		{DType: libmalt.Float64}, {DType: libmalt.Float32, Count: 1}, {DType: libmalt.Float64, Count: 5000},
	})
}

// randomize fills the arrays with numbers of all magnitudes.
func randomize(v *libmalt.Vector, arrays []libmalt.Array, rnd *rand.Rand) {
	for i, a := range arrays {
		b := v.Array(i)
		for j := range a.Count {
			x := rnd.NormFloat64() * math.Exp2(float64(rnd.IntN(40)-20))
			if a.DType == libmalt.Float32 {
				binary.LittleEndian.PutUint32(b[4*j:], math.Float32bits(float32(x)))
			} else {
				binary.LittleEndian.PutUint64(b[8*j:], math.Float64bits(x))
			}
		}
	}
}

// TestInPlaceIsTheTwin: Sync, which averages in place, gives bit for bit what
// Scatter and Gather give, which go through boxes; with every fold, weights also
// of 0, and folds that differ from rank to rank.
func TestInPlaceIsTheTwin(t *testing.T) {
	weights := []func(rank, clock int) float64{
		func(int, int) float64 { return 1 },
		func(rank, clock int) float64 { return float64((rank + clock) % 3) },
		func(int, int) float64 { return 0 },
		func(rank, _ int) float64 { return 1 / float64(3+rank) },
	}
	folds := []func(rank int) string{
		func(int) string { return "mean" }, func(int) string { return "sum" },
		func(int) string { return "min" }, func(int) string { return "max" },
		func(rank int) string { return []string{"mean", "sum", "mean"}[rank%3] },
		func(rank int) string { return []string{"mean", "replace", "mean-received"}[rank%3] },
	}
	for transport, open := range transports() {
		for _, n := range []int{1, 2, 3, 5, 8} {
			if transport == "shm" && n != 3 {
				continue
			}
			t.Run(fmt.Sprintf("%s/n=%d", transport, n), func(t *testing.T) {
				check(t, run(background(t), open(t, n), func(ctx context.Context, w *libmalt.World) error {
					rnd := rand.New(rand.NewPCG(1, uint64(w.Rank())))
					for _, arrays := range shapesInPlace(n) {
						for f, fold := range folds {
							if (arrays[0].Count+f)%2 > 0 && n > 3 {
								continue
							}
							options := "start=own fold=" + fold(w.Rank())
							v, err := w.NewVector(ctx, arrays, "", options)
							if err != nil {
								return err
							}
							twin, err := w.NewVector(ctx, arrays, "", options)
							if err != nil {
								return err
							}
							for clock, weight := range weights {
								randomize(v, arrays, rnd)
								copy(twin.Bytes(), v.Bytes())
								share := weight(w.Rank(), clock)
								k, err := v.Sync(ctx, share)
								if err != nil {
									return err
								}
								if _, err := twin.Scatter(ctx, nil, share); err != nil {
									return err
								}
								want, err := twin.Gather(ctx, "")
								if err != nil {
									return err
								}
								for i := range arrays {
									if !bytes.Equal(v.Array(i), twin.Array(i)) {
										return fmt.Errorf("%v, %s, weights %d: array %d differs", arrays, options, clock, i)
									}
								}
								if k != want || k != n-1 || v.Clock() != twin.Clock() {
									return fmt.Errorf("folded %d at clock %d, the twin %d at %d", k, v.Clock(), want, twin.Clock())
								}
							}
							if err := errors.Join(v.Close(), twin.Close()); err != nil {
								return err
							}
						}
					}
					return nil
				}))
			})
		}
	}
}

// TestInPlaceTouchesNoBox, nor the memory of one: where only syncs are made.
func TestInPlaceTouchesNoBox(t *testing.T) {
	with(t, func(f *faulty) {
		tr := f.Transport
		f.publish = func(ctx context.Context, name string, s rdma.Spec, readers []int) (rdma.Outbox, error) {
			out, err := tr.Publish(ctx, name, s, readers)
			return &untouched{out}, err
		}
	}, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 1000, "start=own")
		if err != nil {
			return err
		}
		for range 20 {
			fill(v.Bytes(), float32(w.Rank()))
			if _, err := v.Sync(ctx, 1); err != nil {
				return err
			}
			if x, err := constant(v.Bytes()); x != 1 || err != nil {
				return fmt.Errorf("mean %v, want 1 (%v)", x, err)
			}
		}
		return w.Barrier(ctx) // nobody has left before that, so nobody went through boxes
	})
}

// untouched is an outbox that cannot send.
type untouched struct{ rdma.Outbox }

func (*untouched) Begin() ([]byte, error) { return nil, errors.New("a box is used") }

// TestInPlaceRings is a guard on a count: in a sync of a small array one rank rings the
// others, once, when the average is there. So each of the others is woken at most once.
func TestInPlaceRings(t *testing.T) {
	for _, n := range []int{2, 3, 5, 8} {
		const syncs = 20
		var rings atomic.Int64
		ts := open(t, n)
		for i, tr := range ts {
			ts[i] = &faulty{Transport: tr, share: func(name string, bytes, words int) (rdma.Shared, error) {
				s, err := tr.Share(name, bytes, words)
				return &rung{s, &rings}, err
			}}
		}
		check(t, run(background(t), ts, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 256, "")
			if err != nil {
				return err
			}
			for range syncs {
				if _, err := v.Sync(ctx, 1); err != nil {
					return err
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			if got := rings.Load(); got != syncs {
				return fmt.Errorf("%d ranks: %d rings in %d syncs", n, got, syncs)
			}
			return w.Barrier(ctx)
		}))
	}
}

// rung counts rings.
type rung struct {
	rdma.Shared
	rings *atomic.Int64
}

func (s *rung) Ring() {
	s.rings.Add(1)
	s.Shared.Ring()
}

// TestInPlaceBytes: each rank sends and gets 2(N-1)/N times its array, and reads no
// more than that of others.
func TestInPlaceBytes(t *testing.T) {
	eachSize(t, func(t *testing.T, n int) {
		const lines, syncs = 130, 7
		job(t, n, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 16*lines*n, "")
			if err != nil {
				return err
			}
			for range syncs {
				if _, err := v.Sync(ctx, 1); err != nil {
					return err
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			st, err := v.Stats()
			if err != nil {
				return err
			}
			for r, e := range st.Edges {
				want := uint64(2 * 64 * lines * syncs)
				messages := uint64(syncs)
				if r == w.Rank() {
					want, messages = 0, 0
				}
				if e.SentBytes != want || e.FoldedBytes != want || e.SentMessages != messages || e.FoldedMessages != messages || e.AgeMax != 0 {
					return fmt.Errorf("edge %d: %+v, want %d messages of %d bytes in all", r, e, messages, want)
				}
			}
			if st.Scatters != syncs || st.Gathers != syncs {
				return fmt.Errorf("%d scatters and %d gathers, want %d", st.Scatters, st.Gathers, syncs)
			}
			return nil
		})
	})
}

// TestInPlaceConfigured to another graph and back.
func TestInPlaceConfigured(t *testing.T) {
	job(t, 4, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 1000, "")
		if err != nil {
			return err
		}
		for _, c := range []struct {
			options string
			want    func(rank int) float32
		}{
			{"graph=all", func(int) float32 { return 2.5 }},
			{"graph=ring", func(rank int) float32 { return (float32(rank+1) + float32((rank+3)%4+1)) / 2 }},
			{"graph=all fold=max", func(int) float32 { return 4 }},
			{"graph=all fold=sum", func(int) float32 { return 10 }},
		} {
			if err := v.Configure(ctx, c.options); err != nil {
				return err
			}
			for range 3 {
				fill(v.Bytes(), float32(w.Rank()+1))
				if _, err := v.Sync(ctx, 1); err != nil {
					return err
				}
				if x, err := constant(v.Bytes()); x != c.want(w.Rank()) || err != nil {
					return fmt.Errorf("%s: got %v (%v)", c.options, x, err)
				}
			}
		}
		return nil
	})
}

// TestInPlaceIsARoute.
func TestInPlaceIsARoute(t *testing.T) {
	for transport, open := range transports() {
		if transport == "tcp" { // where nothing is in place
			continue
		}
		t.Run(transport, func(t *testing.T) {
			routetest.Route{Ranks: func(t *testing.T) []rdma.Transport { return open(t, 3) }, Elements: 1000, Rounds: 60}.Run(t)
		})
	}
}

package libmalt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"malt/libmalt"
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

// TestInPlaceBytes: each rank sends and gets 2(N-1)/N times its array, and reads no
// more than that of others.
func TestInPlaceBytes(t *testing.T) {
	eachSize(t, func(t *testing.T, n int) {
		const lines, syncs = 30, 7
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

// TestInPlaceUneven: ranks that make different numbers of syncs, of scatters by
// themselves, and meet in barriers between (join rule).
func TestInPlaceUneven(t *testing.T) {
	for transport, open := range transports() {
		t.Run(transport, func(t *testing.T) {
			check(t, run(background(t), open(t, 3), func(ctx context.Context, w *libmalt.World) error {
				rnd := rand.New(rand.NewPCG(2, uint64(w.Rank())))
				v, err := vector(ctx, w, 1000, "")
				if err != nil {
					return err
				}
				for range 30 {
					for range rnd.IntN(5) {
						fill(v.Bytes(), 1)
						if rnd.IntN(4) > 0 {
							_, err = v.Sync(ctx, 1)
						} else if _, err = v.Scatter(ctx, nil, 1); err == nil {
							_, err = v.Gather(ctx, "")
						}
						if err != nil {
							return err
						}
						if x, err := constant(v.Bytes()); x != 1 || err != nil {
							return fmt.Errorf("mean of ones is %v (%v)", x, err)
						}
					}
					if err := w.Barrier(ctx); err != nil {
						return err
					}
				}
				return nil
			}))
		})
	}
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

// again goes on with a sync that ran into its timeout.
func again(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error {
	_, err := v.Sync(ctx, 1)
	return err
}

// cancelled gives it up, and gathers what it would have brought.
func cancelled(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
	if err := v.Cancel(); err != nil {
		return err
	}
	_, err := v.Sync(ctx, 1)
	if err := wantErr(err, libmalt.ErrState); err != nil {
		return err
	}
	k, err := v.Gather(ctx, "")
	if k != w.Size()-1 && err == nil {
		err = fmt.Errorf("folded %d", k)
	}
	return err
}

// TestInPlaceTimeouts: rank 0 comes first, runs into its timeout, and goes on in
// each of the ways there are: the same call again, giving it up and gathering,
// closing, a collective call before it goes on. The others need not notice.
func TestInPlaceTimeouts(t *testing.T) {
	for _, c := range []struct {
		name    string
		goOn    func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error
		barrier bool // rank 0 makes one before the others come
		mean    float32
	}{
		{"again", again, false, 2},
		{"cancel", cancelled, false, 2},
		{"close", func(_ context.Context, _ *libmalt.World, v *libmalt.Vector) error { return v.Close() }, false, 2},
		{"barrier", func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			_, err := v.Sync(ctx, 1)
			return err
		}, true, 2},
	} {
		for transport, open := range transports() {
			t.Run(c.name+"/"+transport, func(t *testing.T) {
				gone := make(chan struct{})
				check(t, run(background(t), open(t, 3), func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, 1000, "start=own")
					if err != nil {
						return err
					}
					fill(v.Bytes(), float32(w.Rank()+1))
					if w.Rank() > 0 {
						<-gone
						if _, err := v.Sync(ctx, 1); err != nil {
							return err
						}
						if c.barrier {
							err = w.Barrier(ctx)
						}
					} else {
						_, err := v.Sync(tried(), 1)
						if err := wantErr(err, libmalt.ErrTimeout); err != nil {
							return err
						}
						if c.name == "close" { // its part has to be sent before
							err = c.goOn(ctx, w, v)
							close(gone)
							return err
						}
						close(gone)
						err = c.goOn(ctx, w, v)
						if err != nil {
							return err
						}
					}
					if err != nil {
						return err
					}
					if x, err := constant(v.Bytes()); x != c.mean || err != nil {
						return fmt.Errorf("mean %v, want %v (%v)", x, c.mean, err)
					}
					return nil
				}))
			})
		}
	}
}

// TestInPlaceGivenUpLate: who gives up when all have arrived has done its part, so
// the others do not wait for it; its own gather waits for theirs.
func TestInPlaceGivenUpLate(t *testing.T) {
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 1000, "start=own")
		if err != nil {
			return err
		}
		for clock := range 200 {
			fill(v.Bytes(), float32(w.Rank()+1))
			if w.Rank() == 0 {
				_, err = v.Sync(ctx, 1)
			} else {
				for range clock % 5 {
					if _, err = v.Sync(tried(), 1); err == nil {
						break
					}
				}
				if clock%5 == 0 || errors.Is(err, libmalt.ErrTimeout) {
					if err = v.Cancel(); err == nil {
						_, err = v.Gather(ctx, "")
						if errors.Is(err, libmalt.ErrState) && clock%5 == 0 { // nothing was given up
							_, err = v.Sync(ctx, 1)
						}
					}
				}
			}
			if err != nil {
				return err
			}
			if x, err := constant(v.Bytes()); x != 1.5 || err != nil {
				return fmt.Errorf("clock %d: mean %v, want 1.5 (%v)", clock+1, x, err)
			}
		}
		st, err := v.Stats()
		if err == nil && (st.Scatters != 200 || st.Gathers != 200 || v.Clock() != 200) {
			err = fmt.Errorf("%d scatters, %d gathers at clock %d", st.Scatters, st.Gathers, v.Clock())
		}
		return err
	})
}

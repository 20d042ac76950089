package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
	"unsafe"

	"malt/libmalt"
	"malt/rdma/rdmatest/inmem"
)

// wires are what part of the bytes of a float64 passes between hosts, and how far a sync may be
// off, of the largest value that is sent.
var wires = map[string]struct{ sent, off float64 }{
	"exact": {1, 1e-12}, "bf16": {2. / 8, 0x1p-7}, "f16": {(2 + 4./256) / 8, 0x1p-10}, "int8": {(1 + 4./256) / 8, 1. / 64},
}

// alike is what the first rank has found at each clock, to compare with.
type alike struct {
	mu    sync.Mutex
	found map[uint64][]float64
}

func (a *alike) check(clock uint64, x []float64) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	first, ok := a.found[clock]
	if !ok {
		a.found[clock] = append(first, x...)
		return nil
	}
	for i := range x {
		if math.Float64bits(x[i]) != math.Float64bits(first[i]) {
			return fmt.Errorf("clock %d: element %d is %v, of another rank %v", clock, i, x[i], first[i])
		}
	}
	return nil
}

// wired runs body on all ranks, with a vector that travels like this.
func wired(t *testing.T, host []int, n int, options string, body func(ctx context.Context, v *libmalt.Vector, x []float64) error) {
	t.Helper()
	check(t, run(background(t), inmem.NewHosts(host...), func(ctx context.Context, w *libmalt.World) error {
		v, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float64, Count: n}}, "v", "start=own "+options)
		if err != nil {
			return err
		}
		return body(ctx, v, unsafe.Slice((*float64)(unsafe.Pointer(&v.Bytes()[0])), n))
	}))
}

// TestWire: ranks change a model of large values by little, with weights of their own: the model is
// the first one and all changes, as exactly as the last changes are sent, however many syncs there
// were. What ranks add up is as exact as it is sent. All ranks have the same bits, and the bytes
// are so many.
func TestWire(t *testing.T) {
	const n, syncs, step, start = 16 * 24 * 105, 8, 1e-3, 1000.0
	for i, host := range layouts {
		for wire, is := range wires {
			if i == 0 && wire == "exact" || testing.Short() && i != 3 {
				continue // a share is worth no second hop there; one layout is enough for the race detector
			}
			for _, fold := range []string{"mean", "sum"} {
				t.Run(fmt.Sprint(host, " ", wire, " ", fold), func(t *testing.T) {
					all := &alike{found: map[uint64][]float64{}}
					var mu sync.Mutex
					sent := 0.0
					wired(t, host, n, "fold="+fold+" wire="+wire, func(ctx context.Context, v *libmalt.Vector, x []float64) error {
						w, want := v.World(), make([]float64, n)
						for i := range x {
							x[i], want[i] = start, start
						}
						for s := range syncs {
							total, sums, most := 0.0, make([]float64, n), 0.0
							for r := range w.Size() {
								rnd, weight := rand.New(rand.NewPCG(uint64(s), uint64(r))), 1+float64(r%3)
								total += weight
								for i := range x {
									change := step * rnd.NormFloat64()
									switch {
									case fold == "mean":
										sums[i] += weight * change
									default:
										sums[i] += change
										most = max(most, math.Abs(sums[i]))
									}
									if r == w.Rank() && fold == "mean" {
										x[i] += change
									} else if r == w.Rank() {
										x[i] = change
									}
								}
							}
							if _, err := v.Sync(ctx, 1+float64(w.Rank()%3)); err != nil {
								return err
							}
							if err := all.check(v.Clock(), x); err != nil {
								return err
							}
							off := 3 * is.off * most
							if fold == "mean" {
								off = 20 * is.off * step
							}
							for i := range x {
								if fold == "mean" {
									want[i] += sums[i] / total
								} else {
									want[i] = sums[i]
								}
								if s > 3 && !(math.Abs(x[i]-want[i]) <= max(off, 1e-9)) {
									return fmt.Errorf("sync %d: element %d is %v, expected %v", s, i, x[i], want[i])
								}
							}
						}
						mu.Lock()
						for r, h := range host {
							if h != host[w.Rank()] {
								sent += float64(w.Traffic(r).SentBytes)
							}
						}
						mu.Unlock()
						return w.Barrier(ctx)
					})
					hosts := map[int]bool{}
					for _, h := range host {
						hosts[h] = true
					}
					if want := syncs * 2 * float64(len(hosts)-1) * 8 * n * is.sent; sent < want || sent > 1.02*want {
						t.Errorf("%.0f bytes passed between hosts, expected %.0f", sent, want)
					}
				})
			}
		}
	}
}

// TestWireAfterGivingUp: ranks run out of time at any moment of an exchange, so that some are given up:
// all have the same bits at each clock all the same.
func TestWireAfterGivingUp(t *testing.T) {
	const n, syncs = 16 * 24 * 105, 60
	for _, host := range [][]int{{0, 1, 2}, {0, 0, 1, 1, 2}} {
		for _, wire := range []string{"bf16", "int8"} {
			if testing.Short() && (len(host) > 3 || wire != "int8") {
				continue
			}
			t.Run(fmt.Sprint(host, " ", wire), func(t *testing.T) {
				all := &alike{found: map[uint64][]float64{}}
				wired(t, host, n, "wire="+wire, func(ctx context.Context, v *libmalt.Vector, x []float64) error {
					rnd := rand.New(rand.NewPCG(uint64(len(wire)), uint64(v.World().Rank())))
					for range syncs {
						for i := range x {
							x[i] += rnd.NormFloat64()
						}
						limit := time.Hour
						if rnd.IntN(4) == 0 {
							limit = time.Duration(rnd.IntN(3000)) * time.Microsecond
						}
						short, stop := context.WithTimeout(ctx, limit)
						_, err := v.Sync(short, 1)
						stop()
						if errors.Is(err, libmalt.ErrTimeout) {
							_, err = v.Gather(ctx, "")
						}
						if err == nil {
							err = all.check(v.Clock(), x)
						}
						if err != nil {
							return err
						}
					}
					return nil
				})
			})
		}
	}
}

// TestWireIsRefused where what is rounded would be lost.
func TestWireIsRefused(t *testing.T) {
	job(t, 3, func(ctx context.Context, w *libmalt.World) error {
		for _, options := range []string{
			"wire=fp8", "wire=bf16 graph=ring", "wire=bf16 consistency=async", "wire=bf16 sparse=model", "wire=bf16 fold=sum-changes", "wire=bf16 fold=max",
		} {
			if err := wantErr(w.Check("v", options), libmalt.ErrInvalid); err != nil {
				return fmt.Errorf("%s: %w", options, err)
			}
		}
		both := []libmalt.Array{{DType: libmalt.Float32, Count: 1}, {DType: libmalt.Float64, Count: 1}}
		if _, err := w.NewVector(ctx, both, "v", "wire=bf16"); wantErr(err, libmalt.ErrInvalid) != nil {
			return fmt.Errorf("two types: %w", err)
		}
		v, err := vector(ctx, w, 10, "wire=int8")
		if err != nil {
			return err
		}
		if want := "name=v graph=all consistency=bsp wire=int8 fold=mean"; v.Describe() != want {
			return fmt.Errorf("described as %q, expected %q", v.Describe(), want)
		}
		return wantErr(v.Configure(ctx, "consistency=ssp:1"), libmalt.ErrInvalid)
	})
}

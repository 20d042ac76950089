package libmalt_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"malt/libmalt"
)

// BenchmarkSparse is a scatter and a gather (mean) of 4 MiB of float32 on each of
// two ranks over shm, whose loop changes that share of the rows. sent-B/op is
// what one scatter sends. A dense vector is the measure.
func BenchmarkSparse(b *testing.B) {
	const n = 1 << 20
	for _, width := range []int{1, 16} {
		for _, kind := range []string{"false", "model", "gradient"} {
			for _, density := range []float64{0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1} {
				if kind == "false" && density > 0.001 {
					continue // whatever changes, all of it travels
				}
				for _, named := range []bool{false, true} {
					if named && kind != "model" {
						continue
					}
					b.Run(fmt.Sprintf("sparse=%s/width=%d/density=%v/rows=%t", kind, width, density, named), func(b *testing.B) {
						rnd := rand.New(rand.NewPCG(1, 1))
						rows := []int64{}
						for r := range n / width {
							if rnd.Float64() < density {
								rows = append(rows, int64(r))
							}
						}
						sent, took := 0, time.Duration(0)
						for _, err := range run(background(b), shared(b, 2), func(ctx context.Context, w *libmalt.World) error {
							array := libmalt.Array{DType: libmalt.Float32, Count: n}
							if kind != "false" {
								array.Row = width
							}
							// A ring is all of two ranks, but for averages in place.
							v, err := w.NewVector(ctx, []libmalt.Array{array}, "v", "graph=star start=own sparse="+kind)
							if err != nil {
								return err
							}
							step := func(i int) error {
								if kind == "gradient" {
									clear(v.Bytes())
								}
								for _, r := range rows {
									for e := range width {
										put(v.Bytes(), int(r)*width+e, float32(i+w.Rank()))
									}
								}
								var list []int64
								if named {
									list = rows
								}
								// Not the benchmark's timer, which stops all goroutines to start.
								start := time.Now()
								bytes, err := v.ScatterRows(ctx, list, nil, 1)
								if err != nil {
									return err
								}
								if _, err := v.Gather(ctx, ""); err != nil {
									return err
								}
								if w.Rank() == 0 && i >= 0 {
									took += time.Since(start)
									sent += bytes
								}
								return w.Barrier(ctx)
							}
							for i := -3; i < b.N; i++ {
								if err := step(i); err != nil {
									return err
								}
							}
							return nil
						}) {
							if err != nil {
								b.Fatal(err)
							}
						}
						b.ReportMetric(float64(took.Nanoseconds())/float64(b.N), "ns/op")
						b.ReportMetric(float64(sent)/float64(b.N), "sent-B/op")
					})
				}
			}
		}
	}
}

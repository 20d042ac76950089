package libmalt_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"

	"malt/internal/fleet"
	"malt/libmalt"
	"malt/libmalt/routetest"
	"malt/rdma"
)

// sizes are the world sizes that every test of a protocol runs at.
var sizes = []int{1, 2, 3, 4, 5, 8}

// background bounds a test's waits: a hang fails with the sentence of the wait.
func background(t testing.TB) context.Context {
	ctx, stop := context.WithTimeout(context.Background(), fleet.Patience)
	t.Cleanup(stop)
	return ctx
}

// eachSize runs body as subtests over sizes.
func eachSize(t *testing.T, body func(t *testing.T, n int)) {
	for _, n := range sizes {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) { body(t, n) })
	}
}

// job runs body as every rank of a world of n over inmem, and leaves in good
// order. The errors that body returns fail the test.
func job(t testing.TB, n int, body func(ctx context.Context, w *libmalt.World) error) {
	t.Helper()
	for r, err := range jobErrors(t, n, body) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// jobErrors is job that returns the ranks' errors.
func jobErrors(t testing.TB, n int, body func(ctx context.Context, w *libmalt.World) error) []error {
	t.Helper()
	return run(background(t), open(t, n), body)
}

func run(ctx context.Context, ts []rdma.Transport, body func(ctx context.Context, w *libmalt.World) error) []error {
	errs := make([]error, len(ts))
	var all sync.WaitGroup
	for r, tr := range ts {
		all.Go(func() {
			w, err := libmalt.NewWorld(ctx, tr, libmalt.Config{})
			if err != nil {
				errs[r] = fmt.Errorf("NewWorld: %w", err)
				return
			}
			errs[r] = body(ctx, w)
			if err := w.Close(); err != nil && errs[r] == nil {
				errs[r] = fmt.Errorf("Close: %w", err)
			}
		})
	}
	all.Wait()
	return errs
}

// vector makes a float32 vector of length n.
func vector(ctx context.Context, w *libmalt.World, n int, options string) (*libmalt.Vector, error) {
	return w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: n}}, "v", options)
}

// fill gives every element of a float32 array the value x.
func fill(b []byte, x float32) { routetest.Fill(b, x) }

// at is element i of a float32 array.
func at(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}

// constant is the value that all elements have, an error if they differ: a torn
// update shows here.
func constant(b []byte) (float32, error) { return routetest.Constant(b) }

// wantErr tells how err differs from want.
func wantErr(err, want error) error {
	if !errors.Is(err, want) {
		return fmt.Errorf("got error %v, want one of kind %q", err, want)
	}
	return nil
}

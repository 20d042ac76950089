package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"malt/libmalt"
)

// TestFoldsMayDiffer: how a rank folds is its own business.
func TestFoldsMayDiffer(t *testing.T) {
	for _, mode := range []string{"bsp", "async", "ssp:1", "notify-ack"} {
		job(t, 3, func(ctx context.Context, w *libmalt.World) error {
			fold := []string{"sum", "max", "mean"}[w.Rank()]
			v, err := vector(ctx, w, 10, "start=own fold="+fold+" consistency="+mode)
			if err != nil {
				return err
			}
			fill(v.Bytes(), float32(w.Rank()+1))
			if _, err := v.Scatter(ctx, nil, 1); err != nil {
				return err
			}
			if mode != "notify-ack" { // there a barrier makes them seen
				if err := w.Barrier(ctx); err != nil {
					return err
				}
			}
			if _, err := v.Gather(ctx, ""); err != nil {
				return err
			}
			if got, want := at(v.Bytes(), 0), []float32{6, 3, 2}[w.Rank()]; got != want {
				return fmt.Errorf("%s of 1, 2 and 3 in %s: got %v", fold, mode, got)
			}
			if mode != "bsp" {
				return nil
			}
			fill(v.Bytes(), float32(w.Rank()+1))
			if _, err := v.Sync(ctx, 1); err != nil {
				return err
			}
			if got, want := at(v.Bytes(), 0), []float32{6, 3, 2}[w.Rank()]; got != want {
				return fmt.Errorf("%s of 1, 2 and 3 in a sync: got %v", fold, got)
			}
			return nil
		})
	}
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
		"shape": func(ctx context.Context, w *libmalt.World, odd bool) error {
			shape := []int{5, 2}
			if odd {
				shape = []int{2, 5}
			}
			_, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: 10, Shape: shape}}, "v", "")
			if err != nil && !(strings.Contains(err.Error(), "float32[5x2]") && strings.Contains(err.Error(), "float32[2x5]")) {
				return fmt.Errorf("without both shapes: %v", err)
			}
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
		"start": func(ctx context.Context, w *libmalt.World, odd bool) error {
			s := "start=same"
			if odd {
				s = "start=own"
			}
			_, err := vector(ctx, w, 10, s)
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

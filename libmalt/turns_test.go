package libmalt_test

import (
	"context"
	"errors"
	"testing"

	"malt/libmalt"
)

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

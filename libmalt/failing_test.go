package libmalt_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"malt/libmalt"
	"malt/libmalt/routetest"
)

// TestLeavingAfterATimeout: rank 1 has missed rank 0 in a sync, and ends. To rank 0
// it is dead, unless it has made that good, or ended the call itself.
func TestLeavingAfterATimeout(t *testing.T) {
	for _, c := range []struct {
		name  string
		after func(ctx context.Context, v, other *libmalt.Vector, met func()) error
		given func() context.Context
		dead  bool
	}{
		{"as it is", func(context.Context, *libmalt.Vector, *libmalt.Vector, func()) error { return nil }, late, true},
		{"after a call on another vector", func(ctx context.Context, _, other *libmalt.Vector, _ func()) error {
			_, err := other.Sync(ctx, 1)
			return err
		}, late, true},
		{"after the same vector's gather", func(ctx context.Context, v, _ *libmalt.Vector, met func()) error {
			met()
			_, err := v.Gather(ctx, "")
			return err
		}, late, false},
		{"after its caller gave it up", func(context.Context, *libmalt.Vector, *libmalt.Vector, func()) error { return nil }, routetest.Tried, false},
	} {
		for transport, open := range transports() {
			t.Run(c.name+"/"+transport, func(t *testing.T) {
				over := make(chan struct{})
				check(t, run(background(t), open(t, 2), func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, 10, "")
					if err != nil {
						return err
					}
					other, err := vector(ctx, w, 10, "consistency=async")
					if err != nil {
						return err
					}
					if w.Rank() == 1 {
						met := sync.OnceFunc(func() { close(over) })
						defer met()
						if _, err := v.Sync(c.given(), 1); err == nil || wantErr(err, libmalt.ErrTimeout) != nil {
							return fmt.Errorf("got %v, want a timeout", err)
						}
						return c.after(ctx, v, other, met)
					}
					<-over // until then rank 1 has no partner
					for range 3 {
						if _, err = v.Sync(ctx, 1); err != nil {
							break
						}
					}
					if c.dead {
						return wantDeath(err, 1)
					}
					return err
				}))
			})
		}
	}
}

// late is a context that ends by itself.
func late() context.Context {
	ctx, stop := context.WithTimeout(context.Background(), 10*time.Millisecond)
	context.AfterFunc(ctx, stop)
	return ctx
}

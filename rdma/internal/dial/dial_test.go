package dial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

type prize struct {
	i      int
	closed *[]int
}

func (p prize) Close() error { *p.closed = append(*p.closed, p.i); return nil }

// try describes what each attempt does: how long it takes, and whether it fails.
type try struct {
	after time.Duration
	fails bool
	deaf  bool // takes that long whatever its context says
}

func TestFirst(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		tries   []try
		won     int // -1: none
		started []time.Duration
		took    time.Duration
		closed  []int
	}{
		"none":                {nil, -1, nil, 0, nil},
		"the first":           {[]try{{after: ms}, {after: ms}}, 0, []time.Duration{0}, ms, nil},
		"refused":             {[]try{{after: ms, fails: true}, {after: ms}}, 1, []time.Duration{0, ms}, 2 * ms, nil},
		"black hole":          {[]try{{after: time.Hour}, {after: ms}}, 1, []time.Duration{0, Apart}, Apart + ms, nil},
		"two black holes":     {[]try{{after: time.Hour}, {after: time.Hour}, {after: ms}}, 2, []time.Duration{0, Apart, 2 * Apart}, 2*Apart + ms, nil},
		"slow, still wins":    {[]try{{after: Apart + ms}, {after: 5 * ms}}, 0, []time.Duration{0, Apart}, Apart + ms, nil},
		"both, one is closed": {[]try{{after: Apart + 9*ms, deaf: true}, {after: ms}}, 1, []time.Duration{0, Apart}, Apart + 9*ms, []int{0}},
		"all fail":            {[]try{{after: ms, fails: true}, {after: Apart, fails: true}}, -1, []time.Duration{0, ms}, Apart + ms, nil},
		"refused, then slow":  {[]try{{after: 100 * ms, fails: true}, {after: time.Hour}, {after: ms}}, 2, []time.Duration{0, 100 * ms, 100*ms + Apart}, 101*ms + Apart, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				starts := make([]time.Duration, len(c.tries))
				var count atomic.Int32
				var closed []int
				won, errs := First(t.Context(), len(c.tries), Apart, func(ctx context.Context, i int) (prize, error) {
					starts[i] = time.Since(began)
					count.Add(1)
					limit := ctx
					if c.tries[i].deaf {
						limit = context.WithoutCancel(ctx)
					}
					select {
					case <-time.After(c.tries[i].after):
					case <-limit.Done():
						return prize{}, limit.Err()
					}
					if c.tries[i].fails {
						return prize{}, fmt.Errorf("attempt %d", i)
					}
					return prize{i, &closed}, nil
				})
				if c.won >= 0 && (errs != nil || won.i != c.won) {
					t.Errorf("%d won, %v; expected %d", won.i, errs, c.won)
				}
				if c.won < 0 {
					if len(errs) != len(c.tries) {
						t.Errorf("errors %v; expected %d", errs, len(c.tries))
					}
					for i, err := range errs {
						if err == nil || err.Error() != fmt.Sprintf("attempt %d", i) {
							t.Errorf("attempt %d failed with %v", i, err)
						}
					}
				}
				if took := time.Since(began); took != c.took {
					t.Errorf("took %v, expected %v", took, c.took)
				}
				if !slices.Equal(starts[:count.Load()], c.started) {
					t.Errorf("attempts began at %v, expected %v", starts[:count.Load()], c.started)
				}
				if !slices.Equal(closed, c.closed) {
					t.Errorf("%v were closed, expected %v", closed, c.closed)
				}
			})
		})
	}
}

// A context that ends ends all attempts, and begins none.
func TestFirstIsGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		began := time.Now()
		_, errs := First(ctx, 9, 300*time.Millisecond, func(ctx context.Context, i int) (prize, error) {
			<-ctx.Done()
			return prize{}, ctx.Err()
		})
		if time.Since(began) != time.Second || len(errs) != 9 {
			t.Errorf("%v after %v", errs, time.Since(began))
		}
		for i, err := range errs {
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("attempt %d: %v", i, err)
			}
		}
	})
}

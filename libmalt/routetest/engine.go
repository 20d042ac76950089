package routetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/libmalt"
	"malt/rdma"
)

// Engine is an engine to be tested.
type Engine struct {
	// Ranks are the transports of a new job.
	Ranks func(t *testing.T, n int) []rdma.Transport
	// Make makes a vector that the engine carries.
	Make func(ctx context.Context, w *libmalt.World) (*libmalt.Vector, error)
	// Change is what the program does to its array before its sync number clock.
	Change func(v *libmalt.Vector, clock int)
	// Check holds the array after that sync against what the engine promises; last: all
	// ranks have made so many, met, and gathered. No rank is away: there is none where another
	// can have made its last sync, which may be Slack ahead.
	Check func(v *libmalt.Vector, clock int, last bool) error
	Slack int
}

const (
	ranks  = 3
	rounds = 40
)

// Run runs all tests of e.
func (e Engine) Run(t *testing.T) {
	t.Run("syncs, and scatters with gathers", e.rounds)
	t.Run("a rank is late", e.late)
	t.Run("a rank leaves", e.leaves)
	t.Run("a rank dies", e.dies)
	t.Run("what engines have not", e.refuses)
}

// job runs body on each rank of a new job.
func (e Engine) job(t *testing.T, body func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), fleet.Patience)
	defer stop()
	var all sync.WaitGroup
	for r, tr := range e.Ranks(t, ranks) {
		all.Go(func() {
			w, err := libmalt.NewWorld(ctx, tr, libmalt.Config{})
			if err == nil {
				var v *libmalt.Vector
				if v, err = e.Make(ctx, w); err == nil {
					err = body(ctx, w, v)
				}
				err = errors.Join(err, w.Close())
			}
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		})
	}
	all.Wait()
}

// steps makes the syncs from clock first to last.
func (e Engine) steps(ctx context.Context, v *libmalt.Vector, first, last int) error {
	for c := first; c <= last; c++ {
		e.Change(v, c)
		if _, err := v.Sync(ctx, 1); err != nil {
			return err
		}
		if err := e.check(v, c, last); err != nil {
			return err
		}
	}
	return nil
}

// check is after sync c of so many.
func (e Engine) check(v *libmalt.Vector, c, of int) error {
	if c+e.Slack >= of {
		return nil
	}
	return e.Check(v, c, false)
}

func (e Engine) rounds(t *testing.T) {
	var all sync.WaitGroup
	all.Add(ranks)
	e.job(t, func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
		gathered := sync.OnceFunc(all.Done)
		defer gathered()
		for c := 1; c <= rounds; c++ {
			e.Change(v, c)
			var err error
			if c%5 == 0 {
				if _, err = v.Scatter(ctx, nil, 1); err == nil {
					_, err = v.Gather(ctx, "")
				}
			} else {
				_, err = v.Sync(ctx, 1)
			}
			if err == nil {
				err = e.check(v, c, rounds)
			}
			if err != nil {
				return err
			}
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if _, err := v.Gather(ctx, ""); err != nil {
			return err
		}
		gathered()
		all.Wait()
		s, err := v.Stats()
		if err == nil && (s.Scatters != rounds || s.Gathers != rounds+1 || v.Clock() != rounds) {
			err = fmt.Errorf("%d scatters, %d gathers and clock %d, want %d, %d and %d", s.Scatters, s.Gathers, v.Clock(), rounds, rounds+1, rounds)
		}
		return errors.Join(err, e.Check(v, rounds, true), w.Barrier(ctx))
	})
}

// A call that waits for a rank that does not come times out and names it, and is given up;
// when the rank has come the next one finds what it has sent.
func (e Engine) late(t *testing.T) {
	var waited sync.WaitGroup
	waited.Add(ranks - 1)
	e.job(t, func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
		if w.Rank() == 0 {
			waited.Wait()
			return errors.Join(e.steps(ctx, v, 1, rounds), w.Barrier(ctx))
		}
		c, err := 0, error(nil)
		for err == nil && c < rounds {
			c++
			e.Change(v, c)
			short, stop := context.WithTimeout(ctx, 50*time.Millisecond)
			_, err = v.Sync(short, 1)
			stop()
		}
		waited.Done()
		if !errors.Is(err, libmalt.ErrTimeout) || !strings.Contains(err.Error(), "rank 0") {
			return fmt.Errorf("without rank 0: %v", err)
		}
		if _, err := v.Gather(ctx, ""); err != nil {
			return err
		}
		return errors.Join(e.check(v, c, rounds), e.steps(ctx, v, c+1, rounds), w.Barrier(ctx))
	})
}

func (e Engine) leaves(t *testing.T) {
	e.job(t, func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
		if err := e.steps(ctx, v, 1, 3); err != nil || w.Rank() == 2 {
			return errors.Join(err, v.Close())
		}
		for c := 4; c <= rounds; c++ {
			e.Change(v, c)
			if _, err := v.Sync(ctx, 1); err != nil {
				return err
			}
		}
		return nil
	})
}

func (e Engine) dies(t *testing.T) {
	e.job(t, func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
		if w.Rank() == 2 {
			err := e.steps(ctx, v, 1, 3)
			w.Abort(rdma.HasFailed(2, "of this test"))
			return err
		}
		err := e.steps(ctx, v, 1, 1<<20)
		var dead *rdma.PeerError
		if !errors.As(err, &dead) || dead.Rank != 2 {
			return fmt.Errorf("after the death of rank 2: %v", err)
		}
		return nil
	})
}

func (e Engine) refuses(t *testing.T) {
	e.job(t, func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
		for what, call := range map[string]func() error{
			"a fold of the user's": func() error { _, err := v.Begin(ctx); return err },
			"rows of a scatter":    func() error { _, err := v.ScatterRows(ctx, []int64{0}, nil, 1); return err },
			"rows of a sync":       func() error { _, err := v.SyncRows(ctx, []int64{0}, 1); return err },
			"some receivers":       func() error { _, err := v.Scatter(ctx, []int{}, 1); return err },
			"another fold":         func() error { _, err := v.Gather(ctx, "max"); return err },
			"configure":            func() error { return v.Configure(ctx, "graph=ring") },
		} {
			if err := call(); !errors.Is(err, libmalt.ErrUnsupported) && !errors.Is(err, libmalt.ErrInvalid) {
				return fmt.Errorf("%s: %v", what, err)
			}
		}
		return errors.Join(e.steps(ctx, v, 1, 3), w.Barrier(ctx))
	})
}

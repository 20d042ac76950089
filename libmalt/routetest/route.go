package routetest

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"testing"

	"malt/internal/fleet"
	"malt/libmalt"
	"malt/rdma"
)

// Route is a route to be tested: of vectors on all in bsp.
type Route struct {
	// Ranks are the transports of a new job, on which the route carries a float32 vector
	// of so many elements, whose name begins with Name.
	Name     string
	Ranks    func(t *testing.T) []rdma.Transport
	Elements int
	Rounds   int
}

// Run runs all tests of r.
func (r Route) Run(t *testing.T) {
	for name, goOn := range map[string]func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error{
		"gathers": gathered,
		"closes":  nil,
		"meets": func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			return gathered(ctx, w, v)
		},
	} {
		t.Run("a rank times out, and "+name, func(t *testing.T) { r.timeout(t, name, goOn) })
	}
	t.Run("given up", r.givenUp)
	t.Run("uneven", r.uneven)
}

func (r Route) job(t *testing.T, body func(ctx context.Context, w *libmalt.World) error) {
	t.Helper()
	ctx, stop := context.WithTimeout(t.Context(), fleet.Patience)
	defer stop()
	var all sync.WaitGroup
	for rank, tr := range r.Ranks(t) {
		all.Go(func() {
			w, err := libmalt.NewWorld(ctx, tr, libmalt.Config{})
			if err == nil {
				err = errors.Join(body(ctx, w), w.Close())
			}
			if err != nil {
				t.Errorf("rank %d: %v", rank, err)
			}
		})
	}
	all.Wait()
}

func (r Route) vector(ctx context.Context, w *libmalt.World, name string) (*libmalt.Vector, error) {
	return w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: r.Elements}}, r.Name+name, "start=own")
}

// Fill gives all elements of a float32 array the value x.
func Fill(b []byte, x float32) {
	if len(b) > 0 {
		binary.LittleEndian.PutUint32(b, math.Float32bits(x))
		Repeat(b, 4)
	}
}

// Repeat fills b with its first n bytes, in a few copies: the race detector looks at each write.
func Repeat(b []byte, n int) {
	for ; n < len(b); n *= 2 {
		copy(b[n:], b[:n])
	}
}

// Constant is the value that all elements of a float32 array have, an error if they differ: a torn update
// shows here.
func Constant(b []byte) (float32, error) {
	x := math.Float32frombits(binary.LittleEndian.Uint32(b))
	if !bytes.Equal(b[4:], b[:len(b)-4]) || math.IsNaN(float64(x)) {
		for i := 0; i < len(b); i += 4 {
			if y := math.Float32frombits(binary.LittleEndian.Uint32(b[i:])); x != y {
				return 0, fmt.Errorf("torn: element 0 is %v, element %d is %v", x, i/4, y)
			}
		}
	}
	return x, nil
}

// fill gives all elements the value x; mean checks that all are the mean of 1, 2, …, n.
func fill(v *libmalt.Vector, x int) { Fill(v.Array(0), float32(x)) }

func mean(v *libmalt.Vector) error { return all(v, float32(v.World().Size()+1)/2) }

func all(v *libmalt.Vector, want float32) error {
	if x, err := Constant(v.Array(0)); err != nil || x != want {
		return fmt.Errorf("clock %d: all elements are %v (%v), want %v", v.Clock(), x, err, want)
	}
	return nil
}

// gathered gathers what a sync that timed out would have brought.
func gathered(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error {
	if _, err := v.Sync(ctx, 1); !errors.Is(err, libmalt.ErrState) {
		return fmt.Errorf("a sync before the gather: %v", err)
	}
	k, err := v.Gather(ctx, "")
	if k != w.Size()-1 && err == nil {
		err = fmt.Errorf("folded %d", k)
	}
	return err
}

// Rank 0 comes first, runs into its timeout, and goes on in one of the ways there are. The
// others need not notice.
func (r Route) timeout(t *testing.T, way string, goOn func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error) {
	gone := make(chan struct{})
	r.job(t, func(ctx context.Context, w *libmalt.World) error {
		v, err := r.vector(ctx, w, "")
		if err != nil {
			return err
		}
		fill(v, w.Rank()+1)
		if w.Rank() > 0 {
			<-gone
			if _, err = v.Sync(ctx, 1); err == nil {
				err = mean(v)
			}
			if way == "meets" && err == nil {
				err = w.Barrier(ctx)
			}
			return err
		}
		_, err = v.Sync(Tried(), 1)
		if goOn == nil { // its part has to be sent before
			err = errors.Join(timedOut(err), v.Close())
			close(gone)
			return err
		}
		close(gone)
		if err = timedOut(err); err == nil {
			err = goOn(ctx, w, v)
		}
		if err == nil {
			err = mean(v)
		}
		return err
	})
}

func timedOut(err error) error {
	if !errors.Is(err, libmalt.ErrTimeout) {
		return fmt.Errorf("got %v, want a timeout", err)
	}
	return nil
}

// Ranks give syncs up at whatever point these have come to, and gather, or make collective
// calls before they go on; all have the mean at each clock.
func (r Route) givenUp(t *testing.T) {
	r.job(t, func(ctx context.Context, w *libmalt.World) error {
		rnd := rand.New(rand.NewPCG(3, uint64(w.Rank())))
		v, err := r.vector(ctx, w, "")
		if err != nil {
			return err
		}
		for clock := range r.Rounds {
			fill(v, w.Rank()+1)
			sync := Hold(func(ctx context.Context) error { _, err := v.Sync(ctx, 1); return err })
			waits, err := sync.Step()
			for steps := rnd.IntN(12); steps > 0 && waits != nil; steps-- {
				waits, err = sync.Step()
			}
			switch {
			case waits == nil:
			case rnd.IntN(2) == 0:
				err = sync.Finish(ctx)
			default:
				if err = timedOut(sync.GiveUp()); err == nil {
					_, err = v.Gather(ctx, "")
				}
			}
			if err == nil {
				err = mean(v)
			}
			if err == nil && clock%10 == 9 {
				err = w.Barrier(ctx)
			}
			if err != nil {
				return err
			}
		}
		st, err := v.Stats()
		if n := uint64(r.Rounds); err == nil && (st.Scatters != n || st.Gathers != n || v.Clock() != n) {
			err = fmt.Errorf("%d scatters, %d gathers at clock %d, want %d", st.Scatters, st.Gathers, v.Clock(), n)
		}
		return err
	})
}

// Ranks make different numbers of syncs, and of scatters by themselves, and meet in
// barriers between (join rule); two vectors in turns.
func (r Route) uneven(t *testing.T) {
	r.job(t, func(ctx context.Context, w *libmalt.World) error {
		rnd := rand.New(rand.NewPCG(2, uint64(w.Rank())))
		var vs [2]*libmalt.Vector
		for i := range vs {
			var err error
			if vs[i], err = r.vector(ctx, w, fmt.Sprint(i)); err != nil {
				return err
			}
		}
		for round := range r.Rounds / 2 {
			for i := range rnd.IntN(5) {
				v := vs[(i+round)%2]
				fill(v, 1)
				var err error
				if rnd.IntN(4) > 0 {
					_, err = v.Sync(ctx, 1)
				} else if _, err = v.Scatter(ctx, nil, 1); err == nil {
					_, err = v.Gather(ctx, "")
				}
				if err == nil {
					err = all(v, 1)
				}
				if err != nil {
					return err
				}
			}
			if err := w.Barrier(ctx); err != nil {
				return err
			}
		}
		return nil
	})
}

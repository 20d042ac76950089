package libmalt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"malt/libmalt"
	"malt/libmalt/routetest"
)

// TestArraysTravelAsOne: float32 and float64 arrays of odd lengths in one
// vector, through sync and allreduce.
func TestArraysTravelAsOne(t *testing.T) {
	arrays := []libmalt.Array{
		{DType: libmalt.Float32, Count: 3}, {DType: libmalt.Float64, Count: 70_001}, {DType: libmalt.Float32, Count: 0},
		{DType: libmalt.Float32, Count: 1}, {DType: libmalt.Float64, Count: 5}, {DType: libmalt.Float32, Count: 300_001},
	}
	eachSize(t, func(t *testing.T, n int) {
		job(t, n, func(ctx context.Context, w *libmalt.World) error {
			v, err := w.NewVector(ctx, arrays, "", "start=own")
			if err != nil {
				return err
			}
			set := func(x float64) {
				for i, a := range arrays {
					b := v.Array(i)
					switch {
					case a.Count == 0:
					case a.DType == libmalt.Float32:
						routetest.Fill(b, float32(x+float64(i)))
					default:
						binary.LittleEndian.PutUint64(b, math.Float64bits(x+float64(i)))
						routetest.Repeat(b, 8)
					}
				}
			}
			check := func(x float64) error {
				got := bytes.Clone(v.Bytes())
				set(x)
				if !bytes.Equal(got, v.Bytes()) {
					return fmt.Errorf("not every element is %v plus its array's number", x)
				}
				return nil
			}
			mean := float64(n-1) / 2
			set(float64(w.Rank()))
			if _, err := v.Sync(ctx, 1); err != nil {
				return err
			}
			if err := check(mean); err != nil {
				return err
			}
			set(float64(w.Rank()))
			if err := v.AllReduce(ctx, "mean"); err != nil {
				return err
			}
			if err := check(mean); err != nil {
				return err
			}
			set(float64(w.Rank()))
			if err := v.Broadcast(ctx, n-1); err != nil {
				return err
			}
			return check(float64(n - 1))
		})
	})
}

// TestStartSameOrOwn: by default every rank begins with rank 0's values.
func TestStartSameOrOwn(t *testing.T) {
	job(t, 3, func(ctx context.Context, w *libmalt.World) error {
		init := make([]byte, 40)
		fill(init, float32(w.Rank()+5))
		for _, c := range []struct {
			start string
			want  float32
		}{{"same", 5}, {"own", float32(w.Rank() + 5)}} {
			v, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: 10, Init: init}}, "", "start="+c.start)
			if err != nil {
				return err
			}
			if got, err := constant(v.Bytes()); err != nil || got != c.want {
				return fmt.Errorf("start=%s: got %v, want %v (%v)", c.start, got, c.want, err)
			}
		}
		return nil
	})
}

// TestEmptyVectors go through all calls.
func TestEmptyVectors(t *testing.T) {
	for _, consistency := range modes {
		eachSize(t, func(t *testing.T, n int) {
			job(t, n, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 0, "consistency="+consistency)
				if err != nil {
					return err
				}
				for range 3 {
					if _, err := v.Sync(ctx, 1); err != nil {
						return err
					}
				}
				return errors.Join(v.AllReduce(ctx, "mean"), v.Broadcast(ctx, n-1), v.Configure(ctx, "graph=ring"), v.Close())
			})
		})
	}
}

// TestConfigure goes through all modes and graphs with one vector.
func TestConfigure(t *testing.T) {
	eachSize(t, func(t *testing.T, n int) {
		job(t, n, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 100, "")
			if err != nil {
				return err
			}
			for _, options := range []string{"consistency=async", "graph=ring consistency=notify-ack", "graph=halton consistency=ssp:1 fold=max", "consistency=bsp graph=all fold=mean"} {
				for range 5 {
					fill(v.Bytes(), float32(w.Rank()))
					if _, err := v.Sync(ctx, 1); err != nil {
						return fmt.Errorf("before %s: %w", options, err)
					}
				}
				if err := v.Configure(ctx, options); err != nil {
					return err
				}
			}
			if got, want := v.Describe(), "name=v graph=all consistency=bsp fold=mean"; got != want {
				return fmt.Errorf("Describe: %q, want %q", got, want)
			}
			before := v.Describe()
			if err := wantErr(v.Configure(ctx, "graph=rign"), libmalt.ErrInvalid); err != nil {
				return err
			}
			if err := wantErr(v.Configure(ctx, "start=own"), libmalt.ErrInvalid); err != nil {
				return err
			}
			fill(v.Bytes(), float32(w.Rank()))
			if _, err := v.Sync(ctx, 1); err != nil || v.Describe() != before {
				return fmt.Errorf("after a refused configuration: %v", err)
			}
			if got := at(v.Bytes(), 0); got != float32(n-1)/2 {
				return fmt.Errorf("got %v", got)
			}
			return nil
		})
	})
}

// TestSegmentCarriesBytes of varying length, to some receivers only.
func TestSegmentCarriesBytes(t *testing.T) {
	job(t, 4, func(ctx context.Context, w *libmalt.World) error {
		s, err := w.NewSegment(ctx, 100, "", "consistency=notify-ack")
		if err != nil {
			return err
		}
		for i := range 10 {
			n := copy(s.Bytes(), strings.Repeat(fmt.Sprint(w.Rank()), i))
			to := []int{(w.Rank() + 1) % 4}
			if sent, err := s.Scatter(ctx, n, to); err != nil || sent != n {
				return fmt.Errorf("sent %d of %d: %w", sent, n, err)
			}
			us, err := s.Begin(ctx)
			if err != nil {
				return err
			}
			from := (w.Rank() + 3) % 4
			if len(us) != 1 || us[0].Rank != from || string(us[0].Data) != strings.Repeat(fmt.Sprint(from), i) {
				return fmt.Errorf("step %d: got %v", i, us)
			}
			if err := s.End(true); err != nil {
				return err
			}
		}
		_, err = s.Scatter(ctx, 101, nil)
		return wantErr(err, libmalt.ErrInvalid)
	})
}

// TestAfterClose every call says that the object was closed; its memory stays
// until it is unmapped, once.
func TestAfterClose(t *testing.T) {
	job(t, 1, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "")
		if err != nil {
			return err
		}
		first := &v.Bytes()[0]
		if err := wantErr(w.Unmap(first), libmalt.ErrBusy); err != nil {
			return err
		}
		if err := v.Close(); err != nil {
			return err
		}
		_, scatter := v.Scatter(ctx, nil, 1)
		_, gather := v.Gather(ctx, "")
		_, sync := v.Sync(ctx, 1)
		for _, err := range []error{scatter, gather, sync, v.AllReduce(ctx, "mean"), v.Broadcast(ctx, 0), v.Configure(ctx, "graph=ring"), v.Close()} {
			if err := wantErr(err, libmalt.ErrClosed); err != nil {
				return err
			}
		}
		if _, err := v.Stats(); err != nil {
			return err
		}
		fill(v.Bytes(), 3)
		if err := w.Unmap(first); err != nil {
			return err
		}
		return wantErr(w.Unmap(first), libmalt.ErrInvalid)
	})
}

// TestArgumentsAreRefused by name and value, before anything is sent: what comes
// next finds the ranks in step.
func TestArgumentsAreRefused(t *testing.T) {
	job(t, 3, func(ctx context.Context, w *libmalt.World) error {
		ring, err := vector(ctx, w, 10, "graph=ring consistency=async")
		if err != nil {
			return err
		}
		next := (w.Rank() + 1) % 3
		scatter := func(to ...int) error { _, err := ring.Scatter(ctx, to, 1); return err }
		gather := func(fold string) error { _, err := ring.Gather(ctx, fold); return err }
		making := func(name, options string, arrays ...libmalt.Array) error {
			_, err := w.NewVector(ctx, arrays, name, options)
			return err
		}
		ten := libmalt.Array{DType: libmalt.Float32, Count: 10}
		_, negative := w.NewSegment(ctx, -1, "", "")
		_, root := w.Broadcast(ctx, nil, 3)
		for _, c := range []struct {
			err  error
			says string
		}{
			{making("", ""), "no arrays"},
			{making("", "", libmalt.Array{DType: 3, Count: 1}), "array 0 has element type 3"},
			{making("", "", ten, libmalt.Array{DType: libmalt.Float64, Count: -1}), "array 1 has -1 elements"},
			{making("", "", libmalt.Array{DType: libmalt.Float64, Count: math.MaxInt64 / 8}), "that fits into memory"},
			{making("", "", libmalt.Array{DType: libmalt.Float64, Count: 6, Shape: []int{2, 2}}), "array 0 has 6 elements, but the shape [2 2]"},
			{making("", "", libmalt.Array{DType: libmalt.Float64, Count: 0, Shape: []int{5}}), "0 elements, but the shape [5]"},
			{making("", "", libmalt.Array{DType: libmalt.Float64, Count: 1, Shape: []int{1 << 32, 1 << 32}}), "1 elements, but the shape"},
			{making("", "", libmalt.Array{DType: libmalt.Float64, Count: 2, Init: make([]byte, 8)}), "8 bytes of first values: expected 16"},
			{making("two words", "", ten), `name "two words": ' ' is not allowed`},
			{making(strings.Repeat("x", 201), "", ten), "the limit is 200"},
			{making("", "graph=halten", ten), `Did you mean "halton"`},
			{making("", "graph=lists:1/0/0", ten), "not strongly connected"},
			{negative, "segment of -1 bytes"},
			{root, "root=3 is not a rank"},
			{ring.Broadcast(ctx, -1), "root=-1 is not a rank"},
			{scatter(next, next), fmt.Sprintf("rank %d is named twice", next)},
			{scatter(w.Rank()), fmt.Sprintf("sends to rank %d only", next)},
			{scatter(3), `scatter of vector "v" to rank 3`},
			{gather("maen"), "Did you mean"},
			{ring.AllReduce(ctx, "replace"), "one of mean, sum, min, max"},
		} {
			if c.err == nil || !errors.Is(c.err, libmalt.ErrInvalid) || !strings.Contains(c.err.Error(), c.says) {
				return fmt.Errorf("got %v, want ErrInvalid and %q", c.err, c.says)
			}
		}
		if ring.Clock() != 0 {
			return fmt.Errorf("a refused scatter has raised the clock to %d", ring.Clock())
		}
		return w.Barrier(ctx)
	})
}

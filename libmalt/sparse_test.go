package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

func TestSparseRefuses(t *testing.T) {
	job(t, 1, func(ctx context.Context, w *libmalt.World) error {
		one := []libmalt.Array{{DType: libmalt.Float32, Count: 10}}
		for _, c := range []struct {
			arrays  []libmalt.Array
			options string
			want    []string
		}{
			{one, "sparse=true", []string{"sparse=model", "keep their value", "sparse=gradient", "count as zero"}},
			{one, "sparse=modle", []string{`Did you mean "model"?`}},
			{append(one, one...), "sparse=model", []string{"2 arrays", "one vector for each"}},
			{[]libmalt.Array{{DType: libmalt.Float32, Count: 10, Row: 3}}, "sparse=gradient", []string{"10 elements in rows of 3"}},
			{[]libmalt.Array{{DType: libmalt.Float32, Count: 10, Row: -1}}, "sparse=model", []string{"rows of -1"}},
		} {
			_, err := w.NewVector(ctx, c.arrays, "", c.options)
			if err := wantErr(err, libmalt.ErrInvalid); err != nil {
				return fmt.Errorf("%s: %w", c.options, err)
			}
			for _, want := range c.want {
				if !strings.Contains(err.Error(), want) {
					return fmt.Errorf("%s: %q does not say %q", c.options, err, want)
				}
			}
		}
		if _, err := w.NewSegment(ctx, 10, "", "sparse=model"); err == nil || !strings.Contains(err.Error(), `"sparse" is not known`) {
			return fmt.Errorf("a sparse segment: %v", err)
		}
		v, err := vector(ctx, w, 10, "sparse=model")
		if err != nil {
			return err
		}
		if err := wantErr(v.Configure(ctx, "sparse=gradient"), libmalt.ErrInvalid); err != nil {
			return err
		}
		for _, rows := range [][]int64{{-1}, {0, 10}, {1 << 40}} {
			if _, err := v.ScatterRows(ctx, rows, nil, 1); !errors.Is(err, libmalt.ErrInvalid) || !strings.Contains(err.Error(), "expected 0 to 9") {
				return fmt.Errorf("rows %v: %v", rows, err)
			}
		}
		if v.Clock() != 0 {
			return fmt.Errorf("refused scatters count: clock %d", v.Clock())
		}
		d, err := w.NewVector(ctx, one, "dense", "sparse=false")
		if err != nil {
			return err
		}
		if _, err := d.SyncRows(ctx, []int64{1}, 1); !errors.Is(err, libmalt.ErrInvalid) || !strings.Contains(err.Error(), "is not sparse") {
			return fmt.Errorf("rows of a dense vector: %v", err)
		}
		return nil
	})
}

func TestSparseMismatchShowsBoth(t *testing.T) {
	for _, options := range [][2]string{{"sparse=model", "sparse=gradient"}, {"sparse=model", ""}} {
		for r, err := range jobErrors(t, 2, func(ctx context.Context, w *libmalt.World) error {
			_, err := vector(ctx, w, 10, options[w.Rank()])
			return err
		}) {
			if !errors.Is(err, libmalt.ErrMismatch) || !strings.Contains(err.Error(), options[0]) || !strings.Contains(err.Error(), options[1]) {
				t.Errorf("%v: rank %d: %v", options, r, err)
			}
		}
	}
}

// TestSparseBytes: what travels, to the byte. 8 tell the number of rows, 4 name
// each, 4 say how old each is where that differs.
func TestSparseBytes(t *testing.T) {
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		v, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float64, Count: 1000, Row: 2}}, "v", "sparse=model consistency=async fold=replace")
		if err != nil {
			return err
		}
		step := func(change []int, rows []int64, want int) error {
			if w.Rank() == 0 {
				for _, r := range change {
					v.Bytes()[16*r]++
				}
				if n, err := v.ScatterRows(ctx, rows, nil, 1); err != nil || n != want {
					return fmt.Errorf("rows %v, named %v: sent %d bytes, %w; want %d", change, rows, n, err, want)
				}
			}
			return w.Barrier(ctx)
		}
		read := func() error {
			if w.Rank() == 1 {
				if _, err := v.Gather(ctx, ""); err != nil {
					return err
				}
			}
			return w.Barrier(ctx)
		}
		refused := func() error {
			if _, err := v.ScatterRows(ctx, []int64{6, 500}, nil, 1); !errors.Is(err, libmalt.ErrInvalid) {
				return fmt.Errorf("row 500 of 500: %v", err)
			}
			return nil
		}
		every := make([]int, 500)
		for i := range every {
			every[i] = i
		}
		for i, err := range []error{
			step(nil, nil, 8), read(),
			step([]int{3, 7}, nil, 8+8+32), read(),
			step([]int{4}, []int64{9, 9, 1}, 8+8+32), read(), // what is named, changed or not
			step(nil, nil, 8+8+16), read(), // 4 had not been named
			refused(), step(nil, []int64{9}, 8+8+16), read(), // not 6 too
			step([]int{1}, nil, 8+8+16),
			step([]int{2}, nil, 8+16+32), // 1 was not read yet
			step([]int{1}, nil, 8+16+32), // nor was 2
			read(), step([]int{5}, nil, 8+8+16), read(),
			step(every, nil, 8000),
			step([]int{5}, nil, 8+2000+8000), // all rows, of two ages
			read(),
		} {
			if err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		}
		if err := v.Broadcast(ctx, 0); err != nil {
			return err
		}
		return step(nil, nil, 8)
	})
}

// TestSparseGradientIsDenseWhereThatIsCheaper, and says the same.
func TestSparseGradientIsDenseWhereThatIsCheaper(t *testing.T) {
	const n = 1000
	for _, rows := range []int{0, 1, 15, 16, 100, 1000} {
		job(t, 2, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, n, "sparse=gradient fold=sum")
			if err != nil {
				return err
			}
			for i := range rows {
				put(v.Bytes(), i, float32(1+w.Rank()))
			}
			sent, err := v.Scatter(ctx, nil, 1)
			if err != nil {
				return err
			}
			if sparse, want := sent < 4*n, rows < 16; sparse != want || sent > 4*n {
				return fmt.Errorf("%d rows of %d: sent %d bytes", rows, n, sent)
			}
			if _, err := v.Gather(ctx, ""); err != nil {
				return err
			}
			for i := range n {
				want := float32(0)
				if i < rows {
					want = 3
				}
				if got := at(v.Bytes(), i); got != want {
					return fmt.Errorf("%d rows: element %d is %v, want %v", rows, i, got, want)
				}
			}
			return nil
		})
	}
}

// TestSparseUserFold: what a fold of the user's sees.
func TestSparseUserFold(t *testing.T) {
	for _, kind := range []string{"model", "gradient"} {
		job(t, 2, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 1000, "sparse="+kind)
			if err != nil {
				return err
			}
			put(v.Bytes(), 3, float32(10+w.Rank()))
			put(v.Bytes(), 5+w.Rank(), float32(20+w.Rank()))
			if _, err := v.Scatter(ctx, nil, 1); err != nil {
				return err
			}
			for range 2 { // the second time after End(false)
				us, err := v.Begin(ctx)
				if err != nil {
					return err
				}
				peer := 1 - w.Rank()
				u := us[0]
				if want := []uint32{3, uint32(5 + peer)}; !slices.Equal(u.Rows, want) {
					return fmt.Errorf("rows %v, want %v", u.Rows, want)
				}
				if len(u.Data) != 8 || at(u.Data, 0) != float32(10+peer) || at(u.Data, 1) != float32(20+peer) {
					return fmt.Errorf("values %v", u.Data)
				}
				whole, err := v.Whole(0)
				if err != nil {
					return err
				}
				own := float32(0)
				if kind == "model" {
					own = float32(20 + w.Rank())
				}
				if len(whole) != 4000 || at(whole, 3) != float32(10+peer) || at(whole, 5+peer) != float32(20+peer) || at(whole, 5+w.Rank()) != own {
					return fmt.Errorf("whole: %v", whole)
				}
				if err := v.End(false); err != nil {
					return err
				}
			}
			return nil
		})
	}
}

// spoiler changes what is sent, and counts mapped memory.
type spoiler struct {
	rdma.Transport
	spoil  func(b []byte) int
	mapped *atomic.Int64
}

func (s *spoiler) Map(n int) ([]byte, error) {
	s.mapped.Add(1)
	return s.Transport.Map(n)
}

func (s *spoiler) Unmap(b []byte) error {
	s.mapped.Add(-1)
	return s.Transport.Unmap(b)
}

func (s *spoiler) Publish(ctx context.Context, name string, spec rdma.Spec, readers []int) (rdma.Outbox, error) {
	out, err := s.Transport.Publish(ctx, name, spec, readers)
	if err == nil && s.spoil != nil && strings.HasPrefix(name, "v/") {
		out = &spoiled{out, s.spoil, nil}
	}
	return out, err
}

type spoiled struct {
	rdma.Outbox
	spoil func(b []byte) int
	slot  []byte
}

func (o *spoiled) Begin() (b []byte, err error) {
	o.slot, err = o.Outbox.Begin()
	return o.slot, err
}

func (o *spoiled) Commit(n int, s rdma.Stamp, to []int) error {
	if s.Clock == 1 {
		n = o.spoil(o.slot[:n])
	}
	return o.Outbox.Commit(n, s, to)
}

// TestSparseCorrupt: a message that cannot be is an error of the gather that
// names its sender, changes nothing, and does not come again.
func TestSparseCorrupt(t *testing.T) {
	for what, spoil := range map[string]func(b []byte) int{
		"a row that is none":      func(b []byte) int { b[9] = 200; return len(b) },
		"rows that do not ascend": func(b []byte) int { b[8] = 9; return len(b) },
		"too short":               func(b []byte) int { return len(b) - 4 },
		"no count":                func([]byte) int { return 3 },
		"a count too high":        func(b []byte) int { b[6] = 1; return len(b) },
	} {
		for _, kind := range []string{"model", "gradient"} {
			t.Run(kind+"/"+what, func(t *testing.T) {
				ts := inmem.New(2)
				ts[1] = &spoiler{ts[1], spoil, new(atomic.Int64)}
				for r, err := range run(background(t), ts, func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, 1000, "sparse="+kind)
					if err != nil {
						return err
					}
					for clock := range 2 {
						put(v.Bytes(), 2, float32(clock+1))
						put(v.Bytes(), 6, float32(clock+1))
						_, err = v.Sync(ctx, 1)
						if w.Rank() == 1 || clock == 1 {
							if err != nil {
								return err
							}
							continue
						}
						if !errors.Is(err, rdma.ErrCorrupt) || !strings.Contains(err.Error(), "rank 1") {
							return fmt.Errorf("got %v, want %v", err, rdma.ErrCorrupt)
						}
						if at(v.Bytes(), 2) != 1 || at(v.Bytes(), 6) != 1 {
							return errors.New("the vector has changed")
						}
					}
					return nil
				}) {
					if err != nil {
						t.Errorf("rank %d: %v", r, err)
					}
				}
			})
		}
	}
}

// TestSparseGivesMemoryBack: closing, and a making that fails.
func TestSparseGivesMemoryBack(t *testing.T) {
	var mapped atomic.Int64
	ts := inmem.New(2)
	for i := range ts {
		ts[i] = &spoiler{ts[i], nil, &mapped}
	}
	for r, err := range run(background(t), ts, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 100, "sparse=model start=own")
		if err != nil {
			return err
		}
		put(v.Bytes(), 1, 1)
		if _, err := v.Scatter(ctx, nil, 1); err != nil {
			return err
		}
		if _, err := v.Begin(ctx); err != nil {
			return err
		}
		if _, err := v.Whole(0); err != nil {
			return err
		}
		first := &v.Bytes()[0]
		if err := errors.Join(v.End(true), v.Close(), w.Unmap(first)); err != nil {
			return err
		}
		if _, err := vector(ctx, w, 100+w.Rank(), "sparse=model"); !errors.Is(err, libmalt.ErrMismatch) {
			return fmt.Errorf("vectors of different lengths: %v", err)
		}
		return nil
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
	if n := mapped.Load(); n != 0 {
		t.Errorf("%d pieces of memory are still mapped", n)
	}
}

// TestSparseDeadReader: rows are not kept for a reader that has died.
func TestSparseDeadReader(t *testing.T) {
	died := make(chan struct{})
	errs := jobErrors(t, 3, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 100, "sparse=model consistency=async fold=replace")
		if err != nil {
			return err
		}
		if w.Rank() == 2 {
			w.Abort(rdma.HasFailed(w.Rank(), "killed by the test"))
			close(died)
			return nil
		}
		<-died
		if w.Rank() == 1 {
			return v.Close() // reads no more either
		}
		for i := range 5 {
			put(v.Bytes(), i, 1)
			if _, err := v.Scatter(ctx, nil, 1); err != nil {
				return err
			}
		}
		for {
			put(v.Bytes(), 9, at(v.Bytes(), 9)+1)
			n, err := v.Scatter(ctx, nil, 1)
			if err != nil {
				return err
			}
			if n == 2*8 { // once rank 1 has closed its end: nobody lacks a row
				return nil
			}
			if ctx.Err() != nil {
				return fmt.Errorf("a scatter of one row still sends %d bytes", n)
			}
		}
	})
	if errs[0] != nil || errs[1] != nil {
		t.Errorf("%v", errs)
	}
}

package libmalt_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"malt/libmalt"
)

// TestSparseIsItsTwin holds filters against whole arrays, too: what was sent and what is held back
// are the values, bit for bit.

func TestFilterRefuses(t *testing.T) {
	job(t, 1, func(ctx context.Context, w *libmalt.World) error {
		for options, want := range map[string]string{
			"filter=dvf:0.1":                                      "goes with sparse=model, got sparse=false",
			"filter=dvf:0.1 sparse=gradient":                      "goes with sparse=model, got sparse=gradient",
			"filter=dvf:0.1 fold=sum-changes":                     "goes with sparse=model, got sparse=false",
			"filter=dvf:0.1 sparse=model fold=sum-changes":        "Take graph=shards with sparse=model",
			"filter=dfv:0.1 sparse=model":                         `Did you mean "dvf"?`,
			"filter=dvf:0.1 sparse=model graph=shards":            "goes with fold=sum-changes or mean-changes",
			"filter=top:1% sparse=model fold=mean graph=shards:1": "goes with fold=sum-changes or mean-changes",
		} {
			if _, err := vector(ctx, w, 10, options); !errors.Is(err, libmalt.ErrInvalid) || !strings.Contains(err.Error(), want) {
				return fmt.Errorf("%s: %v; want %q in it", options, err, want)
			}
		}
		v, err := vector(ctx, w, 10, "sparse=model filter=dvf:0.1:0.5")
		if err != nil {
			return err
		}
		if want := "sparse=model filter=dvf:0.1:0.5"; !strings.Contains(v.Describe(), want) {
			return fmt.Errorf("%q does not say %q", v.Describe(), want)
		}
		return wantErr(v.Configure(ctx, "filter=dvf:1"), libmalt.ErrInvalid)
	})
}

func TestFilterMismatchShowsBoth(t *testing.T) {
	options := []string{"filter=dvf:0.5", "filter=dvf:0.25"}
	for r, err := range jobErrors(t, 2, func(ctx context.Context, w *libmalt.World) error {
		_, err := vector(ctx, w, 10, "sparse=model "+options[w.Rank()])
		return err
	}) {
		if !errors.Is(err, libmalt.ErrMismatch) || !strings.Contains(err.Error(), options[0]) || !strings.Contains(err.Error(), options[1]) {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// filtered is rank 0's scatters of ten numbers to rank 1, which begin with 0. play says what it sends; then
// rank 1 has the values that want has.
func filtered(t *testing.T, options string, play func(v *libmalt.Vector, send func(rows int)), want map[int]float32) {
	t.Helper()
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "sparse=model consistency=async fold=replace "+options)
		if err != nil {
			return err
		}
		if w.Rank() == 0 {
			play(v, func(rows int) {
				sent, err := v.Scatter(ctx, nil, 1)
				bytes := 8 + (4*rows+7)&^7 + 4*rows
				if rows == 10 {
					bytes = 40
				}
				if err != nil || sent != bytes {
					t.Errorf("%s: clock %d: %d bytes sent, %v; want the %d of %d rows", options, v.Clock(), sent, err, bytes, rows)
				}
			})
		}
		if err := w.Barrier(ctx); err != nil || w.Rank() == 0 {
			return errors.Join(err, w.Barrier(ctx))
		}
		if _, err := v.Gather(ctx, ""); err != nil {
			return err
		}
		for i := range 10 {
			if got := at(v.Bytes(), i); math.Float32bits(got) != math.Float32bits(want[i]) {
				t.Errorf("%s: element %d is %v, want %v", options, i, got, want[i])
			}
		}
		return w.Barrier(ctx)
	})
}

// TestFilterHoldsBack until a row has moved on, and then sends all that it has moved.
func TestFilterHoldsBack(t *testing.T) {
	filtered(t, "filter=dvf:4", func(v *libmalt.Vector, send func(rows int)) {
		put(v.Bytes(), 1, 4)
		put(v.Bytes(), 2, 5)
		send(1) // 2
		put(v.Bytes(), 1, 2)
		put(v.Bytes(), 2, 7)
		send(1) // 2 once more, since it was not read; its newest value is held back
		send(1) // the limit is 2.3
		send(1) // and now just 2
		put(v.Bytes(), 2, 8)
		send(2)
	}, map[int]float32{1: 2, 2: 8})
}

// TestFilterSendsNoNewerValueOfARow: a row that was not read comes again as it was sent, while its newest
// value is held back.
func TestFilterSendsNoNewerValueOfARow(t *testing.T) {
	filtered(t, "filter=dvf:4", func(v *libmalt.Vector, send func(rows int)) {
		put(v.Bytes(), 2, 5)
		send(1)
		put(v.Bytes(), 2, 6)
		put(v.Bytes(), 3, 9)
		if sent, err := v.Scatter(background(t), nil, 1); err != nil || sent != 8+16+8 {
			t.Errorf("%d bytes sent, %v; want those of rows 2 and 3 with ages", sent, err)
		}
	}, map[int]float32{2: 5, 3: 9})
}

// TestFilterSendsWhatIsNotANumber, and what it was before, and what is infinite.
func TestFilterSendsWhatIsNotANumber(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, options := range []string{"filter=dvf:1e9", "filter=dvf-l2:1e9", "filter=top:10%"} {
		filtered(t, options, func(v *libmalt.Vector, send func(rows int)) {
			put(v.Bytes(), 1, nan)
			put(v.Bytes(), 2, inf)
			put(v.Bytes(), 3, 3)
			send(2)
		}, map[int]float32{1: nan, 2: inf})
	}
	filtered(t, "filter=top:20%", func(v *libmalt.Vector, send func(rows int)) {
		put(v.Bytes(), 1, 3)
		put(v.Bytes(), 2, nan)
		put(v.Bytes(), 3, 4)
		send(2)
	}, map[int]float32{2: nan, 3: 4})
}

// TestFilterOfZero holds nothing back: neither a row that has moved by less than any other number, nor a 0 of
// another sign.
func TestFilterOfZero(t *testing.T) {
	least, minus := math.Float32frombits(1), float32(math.Copysign(0, -1))
	for _, options := range []string{"", "filter=dvf:0", "filter=dvf:0:9", "filter=dvf-l2:0", "filter=top:100%"} {
		filtered(t, options, func(v *libmalt.Vector, send func(rows int)) {
			put(v.Bytes(), 1, least)
			put(v.Bytes(), 2, minus)
			put(v.Bytes(), 3, 3)
			send(3)
		}, map[int]float32{1: least, 2: minus, 3: 3})
	}
}

// TestFilterSendsNamedRows, whatever it would hold back.
func TestFilterSendsNamedRows(t *testing.T) {
	filtered(t, "filter=dvf:100", func(v *libmalt.Vector, send func(rows int)) {
		put(v.Bytes(), 1, 1)
		put(v.Bytes(), 2, 2)
		if _, err := v.ScatterRows(background(t), []int64{2}, nil, 1); err != nil {
			t.Error(err)
		}
	}, map[int]float32{2: 2})
}

// TestFilterWhileAReceiverIsLate: the other distance counts from the message that is due before the last was
// folded, and no longer than that. A rank that is in a collective call is not late, nor is one that has got all
// values in such a call.
func TestFilterWhileAReceiverIsLate(t *testing.T) {
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "sparse=model consistency=async filter=dvf:0:200")
		if err != nil {
			return err
		}
		probe, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: 1}}, "probe", "graph=ring")
		if err != nil {
			return err
		}
		// change has rank 0 change another element, and send so many bytes.
		change := func(bytes int) func() error {
			return func() error {
				if w.Rank() == 1 {
					return nil
				}
				put(v.Bytes(), int(v.Clock()), 10)
				sent, err := v.Scatter(ctx, nil, 1)
				if err != nil || sent != bytes {
					return fmt.Errorf("%d bytes sent, %w; want %d", sent, err, bytes)
				}
				return nil
			}
		}
		read := func() error {
			if w.Rank() == 0 {
				return nil
			}
			_, err := v.Gather(ctx, "replace")
			return err
		}
		meet := func() error { _, err := probe.Sync(ctx, 1); return err } // not in a collective call
		rows := func(n int) int { return 8 + (4*n+7)&^7 + 4*n }
		aged := func(n int) int { return 8 + 8*n + 4*n }
		for i, do := range []func() error{
			change(rows(1)), meet, read, meet,
			change(rows(1)), change(rows(1)), meet, read, meet, // the second is held back, and the first comes again
			change(rows(2)), // both
			func() error {
				if w.Rank() == 1 {
					return w.Barrier(ctx)
				}
				// This returns once rank 1 is in the barrier.
				return errors.Join(meet(), change(aged(3))(), w.Barrier(ctx))
			},
			func() error { return v.AllReduce(ctx, "max") }, meet, change(rows(1)), meet,
		} {
			if err := do(); err != nil {
				return fmt.Errorf("step %d: %w", i, err)
			}
		}
		return nil
	})
}

// TestFilterLosesNothing: after allreduce all have all changes, whatever was held back: exactly, since these
// are whole numbers. Then nothing is left to be sent.
func TestFilterLosesNothing(t *testing.T) {
	const n, rows = 3, 200
	for _, options := range []string{"filter=dvf:5", "filter=dvf:5:50", "filter=dvf-l2:5", "filter=top:3%"} {
		for _, consistency := range []string{"bsp", "async", "ssp:2", "notify-ack:2"} {
			job(t, n, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, rows, "sparse=model fold=replace "+options+" consistency="+consistency)
				if err != nil {
					return err
				}
				r := rand.New(rand.NewPCG(1, uint64(w.Rank())))
				for range 20 {
					for row := w.Rank(); row < rows; row += n { // its own
						put(v.Bytes(), row, at(v.Bytes(), row)+float32(r.IntN(5)-2))
					}
					if _, err := v.Sync(ctx, 1); err != nil {
						return err
					}
				}
				all, err := w.AllGather(ctx, bytes.Clone(v.Bytes()))
				if err != nil {
					return err
				}
				if err := v.AllReduce(ctx, "sum"); err != nil {
					return err
				}
				for row := range rows {
					sum := float32(0)
					for _, of := range all {
						sum += at(of, row)
					}
					if got := at(v.Bytes(), row); got != sum {
						return fmt.Errorf("%s consistency=%s: row %d is %v, want %v", options, consistency, row, got, sum)
					}
				}
				if sent, err := v.Scatter(ctx, nil, 1); err != nil || sent != 8*(n-1) {
					return fmt.Errorf("%s consistency=%s: %d bytes sent after allreduce, %w; want those of no rows", options, consistency, sent, err)
				}
				return nil
			})
		}
	}
}

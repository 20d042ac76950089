package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"malt/graphs"
	"malt/libmalt"
	"malt/libmalt/filter"
	"malt/libmalt/spvec"
)

// TestG12LawOfRows: on shards the law of a sum holds to the bit with sparse=model, and with a filter that holds
// nothing back. In virtual time.
func TestG12LawOfRows(t *testing.T) {
	for n := 2; n <= 6; n += 2 {
		for _, graph := range kept(n) {
			for _, c := range []struct {
				options string
				slack   int
			}{{"consistency=ssp:1 sparse=model", 1}, {"consistency=async sparse=model filter=top:100%", varied}, {"consistency=ssp:0 sparse=model filter=dvf:0:0", 0}} {
				g, err := graphs.Parse(graph, n)
				if err != nil {
					t.Fatal(err)
				}
				t.Run(fmt.Sprintf("%d/%s/%s", n, graph, c.options), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						holdsLaw(t, n, g.Keepers(), "", "sum-changes", "fold=sum-changes graph="+graph+" "+c.options, c.slack, func(_ int, r *rand.Rand) time.Duration {
							return time.Duration(1+r.IntN(9)) * time.Second
						})
					})
				})
			}
		}
	}
}

// partsTwin is what a job on shards has whose ranks are in step: what is held back of the changes of each rank, by
// element, the sum, and what the others know of it.
type partsTwin struct {
	filter    filter.Filter
	row       spvec.Shape
	back      [][]float64
	sum, sent []float64
}

// sync is that of a part, whose keeper has this rank, with these changes of each; it returns the bytes of each
// push, and of the sum.
func (w *partsTwin) sync(keeper, lo, hi int, clock uint64, changes [][]float64) (up []int, down int) {
	s := w.row
	s.Rows = (hi - lo) / s.Width
	bytes := func(rows int) int { return min(8+(4*rows+7)&^7+rows*s.RowBytes(), s.Bytes()) }
	// due are the rows of what has changed that go.
	due := func(x []float64, f filter.Filter) (rows []uint32) {
		var far []float64
		for i := range s.Rows {
			most, sum := 0.0, 0.0
			for _, e := range x[i*s.Width:][:s.Width] {
				most, sum = max(most, math.Abs(e)), sum+e*e
			}
			if f.Measure() == spvec.Squares {
				most = sum
			}
			if most > 0 {
				rows, far = append(rows, uint32(i)), append(far, most)
			}
		}
		if !f.On() {
			return rows
		}
		return f.Due(rows, far, s, clock, false)
	}
	for r, change := range changes {
		back := w.back[r][lo:hi]
		for i, x := range change[lo:hi] {
			back[i] += x
		}
		f := w.filter
		if r == keeper {
			f = filter.Filter{}
		}
		rows := due(back, f)
		for _, row := range rows {
			for e := int(row) * s.Width; e < int(row+1)*s.Width; e++ {
				w.sum[lo+e] += back[e]
				back[e] = 0
			}
		}
		up = append(up, bytes(len(rows)))
	}
	lacks := make([]float64, hi-lo)
	for i := range lacks {
		lacks[i] = w.sum[lo+i] - w.sent[lo+i]
	}
	rows := due(lacks, w.filter)
	for _, row := range rows {
		copy(w.sent[lo+int(row)*s.Width:][:s.Width], w.sum[lo+int(row)*s.Width:])
	}
	return up, bytes(len(rows))
}

// TestFilterOnShardsIsItsTwin: what was pushed and what is held back are the changes, what was published and what is held
// back is the sum: so are the arrays of all ranks after each sync, and the bytes. An allreduce leaves nothing
// back. These are whole numbers, so the order in which they are added makes no difference.
func TestFilterOnShardsIsItsTwin(t *testing.T) {
	const n, rows, steps = 4, 100, 12
	for _, graph := range []string{"shards:1", "shards:1/1", "shards", "shards:2/1"} {
		g, err := graphs.Parse(graph, n)
		if err != nil {
			t.Fatal(err)
		}
		for _, held := range []string{"", "filter=dvf:9", "filter=dvf-l2:9", "filter=top:10%"} {
			for _, width := range []int{1, 3} {
				for _, serves := range []bool{false, true}[:1+1/g.Keepers()] { // rank 0 does nothing else
					t.Run(fmt.Sprintf("%s/%s/%d/%t", graph, held, width, serves), func(t *testing.T) {
						var met [steps + 1]sync.WaitGroup // no rank is ahead: the others would have what it pushes
						for c := range met {
							met[c].Add(n)
						}
						job(t, n, func(ctx context.Context, w *libmalt.World) error {
							v, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float64, Count: rows * width, Row: width}}, "",
								"sparse=model fold=sum-changes consistency=ssp:0 graph="+graph+" "+held)
							if err != nil {
								return err
							}
							want := partsTwin{row: spvec.Shape{Width: width, Elem: 8}, sum: make([]float64, rows*width), sent: make([]float64, rows*width)}
							if held != "" {
								if want.filter, err = filter.Parse(strings.TrimPrefix(held, "filter=")); err != nil {
									return err
								}
							}
							changes, all := make([][]float64, n), make([]float64, rows*width)
							for r := range n {
								want.back, changes[r] = append(want.back, make([]float64, rows*width)), make([]float64, rows*width)
							}
							draw := rand.New(rand.NewPCG(1, 2)) // the same on all ranks
							bytes, left := uint64(0), met[:]
							defer func() {
								for c := range left {
									left[c].Done()
								}
							}()
							for c := uint64(1); c <= steps; c++ {
								left[0].Done()
								if left = left[1:]; w.Rank() > 0 || !serves {
									met[c-1].Wait()
								}
								for r := range n {
									for row := range rows {
										many := draw.IntN(4) == 0
										for e := row * width; e < (row+1)*width; e++ {
											if changes[r][e] = 0; many && (r > 0 || !serves) {
												changes[r][e] = float64(draw.IntN(11) - 5)
											}
											all[e] += changes[r][e]
										}
									}
								}
								if serves && w.Rank() == 0 {
									continue
								}
								for e, x := range changes[w.Rank()] {
									setElement(v.Bytes(), e, element(v.Bytes(), e)+x)
								}
								if _, err := v.Sync(ctx, 1); err != nil {
									return err
								}
								const cut = 8 // rows of whole cache lines, of either width
								pieces := (rows + cut - 1) / cut
								for q := range g.Keepers() {
									lo, hi := pieces*q/g.Keepers()*cut*width, min(pieces*(q+1)/g.Keepers()*cut, rows)*width
									up, down := want.sync(q, lo, hi, c, changes)
									if q != w.Rank() {
										bytes += uint64(up[w.Rank()])
									}
									for _, above := range g.Above(q) {
										if above == w.Rank() {
											bytes += uint64(down)
										}
									}
									for e := lo; e < hi; e++ {
										x := want.sum[e]
										if q != w.Rank() {
											x = want.sent[e] + want.back[w.Rank()][e]
										}
										if got := element(v.Bytes(), e); got != x {
											return fmt.Errorf("clock %d, part %d, element %d: %v, want %v", c, q, e, got, x)
										}
									}
								}
							}
							sent := func() uint64 {
								s, failed := v.Stats()
								err = errors.Join(err, failed)
								n := uint64(0)
								for _, e := range s.Edges {
									n += e.SentBytes
								}
								return n
							}
							before := sent()
							if before != bytes && !(serves && w.Rank() == 0) {
								return fmt.Errorf("%d bytes sent, want %d", before, bytes)
							}
							if err := v.AllReduce(ctx, "sum-changes"); err != nil {
								return err
							}
							for e, x := range all {
								if got := element(v.Bytes(), e); got != x {
									return fmt.Errorf("in the end element %d: %v, want %v", e, got, x)
								}
							}
							before = sent()
							if _, err := v.Sync(ctx, 1); err != nil {
								return err
							}
							empty := 0 // messages
							for q := range g.Keepers() {
								if q != w.Rank() {
									empty++
								}
								for _, above := range g.Above(q) {
									if above == w.Rank() {
										empty++
									}
								}
							}
							if n := sent() - before; n != 8*uint64(empty) {
								return fmt.Errorf("%d bytes sent after an allreduce, want those of %d messages without rows", n, empty)
							}
							if err := errors.Join(err, w.Barrier(ctx)); err != nil { // the changes of one that leaves are published
								return err
							}
							return nil
						})
					})
				}
			}
		}
	}
}

// TestFilterHoldsNothingBackAtTheEnd: a rank that closes the vector pushes all that it has changed.
func TestFilterHoldsNothingBackAtTheEnd(t *testing.T) {
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		v, array, err := numbers(ctx, w, 10, 0, "sparse=model filter=top:10% fold=sum-changes consistency=ssp:0 graph=shards:1")
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			copy(array[3:], []float64{7, 8, 9})
		}
		_, err = v.Sync(ctx, 1)
		if err = errors.Join(err, w.Barrier(ctx)); err != nil {
			return err
		}
		if w.Rank() == 1 {
			return errors.Join(v.Close(), w.Barrier(ctx))
		}
		if want := []float64{0, 0, 0, 0, 0, 9, 0, 0, 0, 0}; !slices.Equal(array, want) {
			return fmt.Errorf("%v, want %v: the filter lets one element pass", array, want)
		}
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		_, err = v.Sync(ctx, 1)
		if want := []float64{0, 0, 0, 7, 8, 9, 0, 0, 0, 0}; err == nil && !slices.Equal(array, want) {
			err = fmt.Errorf("%v, want %v", array, want)
		}
		return err
	})
}

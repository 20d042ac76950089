package libmalt_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"malt/graphs"
	"malt/libmalt"
	"malt/libmalt/routetest"
	"malt/rdma/rdmatest/inmem"
)

// twin is what sparse vectors mean, in whole arrays: each message is a snapshot
// of all values and of when each row changed.
type twin struct {
	n, rows, width int
	model          bool
	fold           string
	graph          *graphs.Graph
	mode           string
	depth, slack   int
	filter         string
	d, u           float64 // its numbers

	values [][]float32 // by rank, as they should be
	sent   [][]float32 // by rank: each row as it was sent last
	change [][]int     // by rank and row: number of the message that it was new in
	clock  []int
	boxes  [][][]snapshot // from, to: newest, or queue
	read   [][]int        // to, from: number of the message folded last
	seen   [][]int        // to, from: of the message taken last
	meant  [][]int        // to, from: of the message meant for it last
}

type snapshot struct {
	number, clock int
	values        []float32
	change        []int
	empty         bool // not meant for this reader
}

func (w *twin) forget() {
	w.boxes, w.read, w.seen, w.meant = make([][][]snapshot, w.n), make([][]int, w.n), make([][]int, w.n), make([][]int, w.n)
	for r := range w.n {
		w.boxes[r], w.read[r], w.seen[r], w.meant[r] = make([][]snapshot, w.n), make([]int, w.n), make([]int, w.n), make([]int, w.n)
		clear(w.change[r])
	}
}

// scatter is rank r's, of rows that are named (nil: found), to some.
func (w *twin) scatter(r int, rows []int64, to []int) {
	w.clock[r]++
	goes := w.goes(r, to)
	for row := range w.rows {
		if at := row * w.width; slices.Contains(rows, int64(row)) || rows == nil && goes[row] {
			copy(w.sent[r][at:at+w.width], w.values[r][at:at+w.width])
			w.change[r][row] = w.clock[r]
		}
	}
	values := slices.Clone(w.sent[r])
	if !w.model {
		copy(values, w.values[r])
	}
	if !w.model && rows != nil {
		for row := range w.rows {
			if !slices.Contains(rows, int64(row)) {
				clear(values[row*w.width : (row+1)*w.width])
			}
		}
	}
	for _, q := range w.graph.AllReceivers(r) {
		s := snapshot{w.clock[r], w.clock[r], values, slices.Clone(w.change[r]), !slices.Contains(to, q)}
		if !s.empty {
			w.meant[q][r] = s.number
		}
		switch {
		case w.depth > 0:
			w.boxes[r][q] = append(w.boxes[r][q], s)
		case !s.empty:
			w.boxes[r][q] = []snapshot{s}
		}
	}
}

// goes tells, by rows, which have changed and are not held back, with receivers to.
func (w *twin) goes(r int, to []int) []bool {
	goes := make([]bool, w.rows)
	var far []float64 // by row; squares of dvf-l2
	for row := range w.rows {
		most, square := 0.0, 0.0
		for at := row * w.width; at < (row+1)*w.width; at++ {
			d := math.Abs(float64(w.values[r][at] - w.sent[r][at]))
			goes[row] = goes[row] || d > 0
			most, square = max(most, d), square+d*d
		}
		if w.filter == "dvf-l2" {
			most = square
		}
		far = append(far, most)
	}
	t, d := float64(w.clock[r]), w.d
	for _, q := range to {
		if w.u > 0 && w.read[q][r] < w.meant[q][r] {
			d = w.u
		}
	}
	// From the smallest on, and of equal ones the first.
	order, sum := make([]int, w.rows), 0.0
	for row := range order {
		order[row] = row
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(far[a], far[b]) })
	for i, row := range order {
		sum += far[row]
		switch w.filter {
		case "dvf":
			goes[row] = goes[row] && far[row] > d/math.Sqrt(t)
		case "dvf-l2":
			goes[row] = goes[row] && sum > d*d*float64(w.rows*w.width)/t
		case "top":
			goes[row] = goes[row] && i >= w.rows-int(math.Ceil(d*float64(w.rows)/100))
		}
	}
	return goes
}

// gather is rank r's; the messages that are there are taken.
func (w *twin) gather(r int) (folded int) {
	type operand struct {
		snapshot
		rank, read int
	}
	var us []operand
	for q := range w.n {
		box := w.boxes[q][r]
		if len(box) == 0 {
			continue
		}
		s := box[0]
		if w.depth > 0 {
			w.boxes[q][r] = box[1:]
		}
		if s.empty || s.number <= w.seen[r][q] || strings.HasPrefix(w.mode, "ssp") && s.clock < w.clock[r]-w.slack {
			continue
		}
		us = append(us, operand{s, q, w.read[r][q]})
		w.seen[r][q], w.read[r][q] = s.number, s.number
	}
	if w.fold == "replace" {
		slices.SortStableFunc(us, func(a, b operand) int {
			if a.clock != b.clock {
				return a.clock - b.clock
			}
			return b.rank - a.rank
		})
	}
	for e := range w.values[r] {
		if len(us) == 0 {
			break
		}
		var xs []float32
		own, mentioned := w.values[r][e], false
		counts := w.fold != "replace" && w.fold != "mean-received"
		for _, u := range us {
			if counts && u.rank > r {
				xs, counts = append(xs, own), false
			}
			if !w.model || u.change[e/w.width] > u.read {
				xs, mentioned = append(xs, u.values[e]), true
			}
		}
		if counts {
			xs = append(xs, own)
		}
		if !mentioned {
			continue
		}
		x := xs[0]
		for _, y := range xs[1:] {
			switch w.fold {
			case "min":
				x = min(x, y)
			case "max":
				x = max(x, y)
			case "replace":
				x = y
			default:
				x += y
			}
		}
		if strings.HasPrefix(w.fold, "mean") {
			x /= float32(len(xs))
		}
		w.values[r][e] = x
	}
	return len(us)
}

// TestSparseIsItsTwin plays random schedules of one goroutine in every mode with
// every fold, and holds all values against the twin, bit for bit.
func TestSparseIsItsTwin(t *testing.T) {
	modes := []string{"bsp", "async", "ssp:0", "ssp:2", "notify-ack:1", "notify-ack:3"}
	folds := []string{"mean", "mean-received", "sum", "min", "max", "replace"}
	seeds := 3
	if testing.Short() {
		seeds = 1
	}
	for _, kind := range []string{"model", "gradient"} {
		for m, mode := range modes {
			t.Run(kind+"/"+mode, func(t *testing.T) {
				for f, fold := range folds {
					for seed := range seeds {
						for _, n := range []int{1, 2, 3, 5} {
							graph := []string{"all", "ring", "halton", "one-peer"}[(seed+f+m+n)%4]
							playTwin(t, n, uint64(seed), kind, mode, graph, fold)
							if t.Failed() {
								return
							}
						}
					}
				}
			})
		}
	}
}

func playTwin(t *testing.T, n int, seed uint64, kind, mode, graph, fold string) {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	options := fmt.Sprintf("graph=%s consistency=%s fold=%s sparse=%s", graph, mode, fold, kind)
	f := []string{"", "dvf:30", "dvf-l2:20", "top:20%", "dvf:20:60"}[r.IntN(5)]
	if kind == "model" && f != "" {
		options += " filter=" + f
	}
	what := fmt.Sprintf("n %d, seed %d, %s", n, seed, options)
	w := &twin{n: n, rows: 1 + r.IntN(30), width: []int{1, 3, 20}[r.IntN(3)], model: kind == "model", fold: fold, mode: mode}
	if _, err := fmt.Sscanf(mode, "notify-ack:%d", &w.depth); err != nil {
		w.depth = 0
	}
	_, _ = fmt.Sscanf(mode, "ssp:%d", &w.slack)
	if kind == "model" {
		name, numbers, _ := strings.Cut(f, ":")
		w.filter = name
		_, _ = fmt.Sscanf(numbers, "%g:%g", &w.d, &w.u)
	}
	var err error
	if w.graph, err = graphs.Parse(graph, n); err != nil {
		t.Fatal(err)
	}
	w.clock = make([]int, n)
	for range n {
		w.values = append(w.values, make([]float32, w.rows*w.width))
		w.sent = append(w.sent, make([]float32, w.rows*w.width))
		w.change = append(w.change, make([]int, w.rows))
	}
	w.forget()

	ctx := background(t)
	worlds, vs := make([]*libmalt.World, n), make([]*libmalt.Vector, n)
	together := func(do func(i int) error) {
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() {
				if err := do(i); err != nil {
					t.Errorf("%s: rank %d: %v", what, i, err)
				}
			})
		}
		all.Wait()
	}
	ts := inmem.New(n)
	together(func(i int) (err error) {
		if worlds[i], err = libmalt.NewWorld(ctx, ts[i], libmalt.Config{}); err != nil {
			return err
		}
		vs[i], err = worlds[i].NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: w.rows * w.width, Row: w.width}}, "v", options)
		return err
	})
	if t.Failed() {
		return
	}
	write := func(i int) {
		for row := range w.rows {
			if kind == "gradient" || r.IntN(6) == 0 {
				for e := row * w.width; e < (row+1)*w.width; e++ {
					w.values[i][e] = float32(1 + r.IntN(100))
					if kind == "gradient" && r.IntN(6) > 0 {
						w.values[i][e] = 0
					}
				}
			}
		}
		for e, x := range w.values[i] {
			put(vs[i].Bytes(), e, x)
		}
	}
	scatter := func(i int) {
		write(i)
		var rows []int64
		if r.IntN(3) == 0 {
			rows = []int64{}
			for range r.IntN(5) {
				rows = append(rows, int64(r.IntN(w.rows)))
			}
		}
		receivers := vs[i].Receivers()
		to := slices.Clone(receivers)
		var given []int
		if mode != "bsp" && r.IntN(3) == 0 {
			given = []int{}
			for _, q := range receivers {
				if r.IntN(2) == 0 {
					given = append(given, q)
				}
			}
			to = given
		}
		if _, err := vs[i].ScatterRows(ctx, rows, given, 1); err != nil {
			t.Fatalf("%s: rank %d: %v", what, i, err)
		}
		w.scatter(i, rows, to)
	}
	gather := func(i int) {
		behind := false
		if w.slack > 0 || mode == "ssp:0" {
			for _, q := range w.graph.AllSenders(i) {
				behind = behind || w.clock[q] < w.clock[i]-w.slack
			}
		}
		k, err := vs[i].Gather(routetest.Tried(), "")
		if behind {
			if !errors.Is(err, libmalt.ErrTimeout) {
				t.Fatalf("%s: rank %d: %d folded, %v; a wait was expected", what, i, k, err)
			}
			return
		}
		if want := w.gather(i); err != nil || k != want {
			t.Fatalf("%s: rank %d: folded %d, %v; want %d", what, i, k, err, want)
		}
		for e, want := range w.values[i] {
			if got := at(vs[i].Bytes(), e); got != want {
				t.Fatalf("%s: rank %d at clock %d: element %d is %v, want %v", what, i, w.clock[i], e, got, want)
			}
		}
	}
	lockstep := mode == "bsp" || w.depth > 0
	for range 25 {
		switch {
		case r.IntN(12) == 0:
			together(func(i int) error { return vs[i].Broadcast(ctx, n/2) })
			most := slices.Max(w.clock)
			w.forget()
			for i := range n {
				w.values[i], w.sent[i], w.clock[i] = slices.Clone(w.values[n/2]), slices.Clone(w.values[n/2]), most
			}
		case lockstep:
			for range max(w.depth, 1) {
				for _, i := range r.Perm(n) {
					scatter(i)
				}
			}
			for range max(w.depth, 1) {
				for _, i := range r.Perm(n) {
					gather(i)
				}
			}
		default:
			for range 2 * n {
				if i := r.IntN(n); r.IntN(2) == 0 {
					scatter(i)
				} else {
					gather(i)
				}
			}
		}
		if t.Failed() {
			break
		}
	}
	together(func(i int) error { return worlds[i].Close() })
}

func put(b []byte, i int, x float32) { fill(b[4*i:4*i+4], x) }

// TestSparseLosesNothing: ranks at their own pace change rows that are theirs,
// each value coming once. What a fold sees of a row only ever grows, so none is
// folded twice, and after the last message every reader has every row's last
// value, however many messages were overwritten.
func TestSparseLosesNothing(t *testing.T) {
	const rows, steps = 200, 60
	for transport, open := range transports() {
		for _, mode := range []string{"async", "ssp:2", "bsp", "notify-ack:2"} {
			t.Run(transport+"/"+mode, func(t *testing.T) {
				for _, n := range []int{2, 3, 5} {
					for r, err := range run(background(t), open(t, n), func(ctx context.Context, w *libmalt.World) error {
						v, err := vector(ctx, w, rows, "sparse=model fold=replace consistency="+mode)
						if err != nil {
							return err
						}
						rnd := rand.New(rand.NewPCG(uint64(w.Rank()), uint64(n)))
						has := make([]float32, rows) // what was folded last
						fold := func() error {
							us, err := v.Begin(ctx)
							if err != nil {
								return err
							}
							for _, u := range us {
								for i := range len(u.Data) / 4 {
									row := i
									if u.Rows != nil {
										row = int(u.Rows[i])
									}
									x := at(u.Data, i)
									if row%n != u.Rank || x <= has[row] {
										_ = v.End(false)
										return fmt.Errorf("row %d of rank %d came as %v behind %v", row, u.Rank, x, has[row])
									}
									has[row] = x
								}
							}
							return v.End(true)
						}
						for step := range steps {
							for row := w.Rank(); row < rows; row += n {
								if rnd.IntN(10) == 0 {
									put(v.Bytes(), row, float32(step+1))
								}
							}
							if _, err := v.Scatter(ctx, nil, 1); err != nil {
								return err
							}
							// Where nobody has to, not every scatter is followed by a gather.
							if mode == "bsp" || mode == "notify-ack:2" || rnd.IntN(3) == 0 {
								if err := fold(); err != nil {
									return err
								}
							}
						}
						if mode == "async" || mode == "ssp:2" {
							if err := w.Barrier(ctx); err != nil {
								return err
							}
							if err := fold(); err != nil {
								return err
							}
						}
						for row := range rows {
							if row%n == w.Rank() {
								has[row] = at(v.Bytes(), row)
							}
						}
						all := make([]byte, 4*rows)
						for row, x := range has {
							put(all, row, x)
						}
						parts, err := w.AllGather(ctx, all)
						if err != nil {
							return err
						}
						for row, x := range has {
							if last := at(parts[row%n], row); x != last {
								return fmt.Errorf("row %d was folded last as %v; rank %d sent %v", row, x, row%n, last)
							}
						}
						return nil
					}) {
						if err != nil {
							t.Errorf("n %d, rank %d: %v", n, r, err)
						}
					}
				}
			})
		}
	}
}

package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"

	"malt/graphs"
	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// numbers makes a vector of n float64, all of them first, and returns its array, too.
func numbers(ctx context.Context, w *libmalt.World, n int, first float64, options string) (*libmalt.Vector, []float64, error) {
	start := slices.Repeat([]float64{first}, n)
	v, err := w.NewVector(ctx, []libmalt.Array{{
		DType: libmalt.Float64, Count: n, Init: unsafe.Slice((*byte)(unsafe.Pointer(&start[0])), 8*n),
	}}, "", options)
	if err != nil {
		return nil, nil, err
	}
	return v, unsafe.Slice((*float64)(unsafe.Pointer(unsafe.SliceData(v.Bytes()))), n), nil
}

// counted decodes whose changes are in an array to which rank i adds, at its clock c, amount
// in place i·clocks + c − 1: by rank up to which clock. An error: some are in it twice, or
// there is a gap.
func counted(array []float64, ranks int, amount float64) ([]uint64, error) {
	clocks := len(array) / ranks
	upTo := make([]uint64, ranks)
	for i := range upTo {
		for c, x := range array[i*clocks : (i+1)*clocks] {
			switch {
			case x == amount && upTo[i] == uint64(c):
				upTo[i]++
			case x != 0:
				return nil, fmt.Errorf("the change of rank %d at clock %d counts %v times, after those up to %d", i, c+1, x/amount, upTo[i])
			}
		}
	}
	return upTo, nil
}

// everywhere is counted for each of equal parts: up to which clock in all of them.
func everywhere(array []float64, parts, ranks int, amount float64) (upTo []uint64, err error) {
	part := len(array) / parts
	for q := range parts {
		in, err := counted(array[q*part:(q+1)*part], ranks, amount)
		if err != nil {
			return nil, fmt.Errorf("part %d: %w", q, err)
		}
		if q == 0 {
			upTo = in
		}
		for r := range upTo {
			upTo[r] = min(upTo[r], in[r])
		}
	}
	return upTo, nil
}

const varied = -1 // another slack at each call

// TestG12LawOfASum: after a sync at clock c the array holds each change once: of this
// rank all up to c, of each other that is not away all up to a clock that is at least
// c − S; v.age tells how old the oldest is, and sync returns from how many there are new
// ones. In virtual time.
func TestG12LawOfASum(t *testing.T) {
	paces := map[string]func(rank int, r *rand.Rand) time.Duration{
		"even": func(int, *rand.Rand) time.Duration { return time.Second },
		"one straggler": func(rank int, _ *rand.Rand) time.Duration {
			return map[bool]time.Duration{false: 1, true: 7}[rank == 1] * time.Second
		},
		"random": func(_ int, r *rand.Rand) time.Duration {
			return time.Duration(1+r.IntN(9)) * time.Second / time.Duration(1+r.IntN(3))
		},
	}
	largest := 12
	if testing.Short() {
		largest = 4
	}
	for _, consistency := range []string{"bsp", "ssp:0", "ssp:1", "ssp:3", "async"} {
		for name, pace := range paces {
			for n := 1; n <= largest; n++ {
				for _, graph := range append(append(factorings(n), kept(n)...), "all") {
					for _, fold := range []string{"sum-changes", "mean-changes"} {
						if fold == "mean-changes" && (n&(n-1) != 0 || strings.Contains(graph, "/")) || graph == "all" && n > 8 || graph != "all" && consistency == "bsp" {
							continue // amounts are to be exact
						}
						g, err := graphs.Parse(graph, n)
						if err != nil {
							t.Fatal(err)
						}
						parts := max(1, g.Keepers())
						slack := map[string]int{"ssp:1": 1, "ssp:3": 3, "async": 1 << 20}[consistency]
						options := "graph=" + graph + " fold=" + fold + " consistency=" + consistency
						t.Run(fmt.Sprintf("%s/%s/%d/%s/%s", consistency, name, n, graph, fold), func(t *testing.T) {
							synctest.Test(t, func(t *testing.T) { holdsLaw(t, n, parts, consistency, fold, options, slack, pace) })
						})
						if consistency == "async" {
							t.Run(fmt.Sprintf("another slack at each call/%s/%d/%s/%s", name, n, graph, fold), func(t *testing.T) {
								synctest.Test(t, func(t *testing.T) { holdsLaw(t, n, parts, consistency, fold, options, varied, pace) })
							})
						}
					}
				}
			}
		}
	}
}

// kept are the graphs shards of n ranks: a parameter server, two, and all; and with trees.
func kept(n int) (list []string) {
	if n <= 8 || n == 12 {
		list = []string{"shards:1", "shards", "shards:2"}[:min(n, 3)]
		for _, keepers := range []int{1, 2, n}[:min(n, 3)] {
			for _, fanout := range []int{2, 3} {
				if fanout < n-1 { // otherwise there is nobody to pass it on
					list = append(list, fmt.Sprintf("shards:%d/%d", keepers, fanout))
				}
			}
		}
	}
	return list
}

// factorings are the butterflies of n ranks.
func factorings(n int) (list []string) {
	var find func(spec string, left int)
	find = func(spec string, left int) {
		if left == 1 {
			list = append(list, "butterfly:"+spec[1:])
		}
		for f := 2; f <= left; f++ {
			if left%f == 0 {
				find(fmt.Sprintf("%sx%d", spec, f), left/f)
			}
		}
	}
	if n > 1 {
		find("", n)
	}
	return list
}

func holdsLaw(t *testing.T, n, parts int, consistency, fold, options string, slack int, pace func(rank int, r *rand.Rand) time.Duration) {
	// Each part that a rank keeps is a table of all changes, of whole cache lines: parts may differ.
	const steps, clocks, weight = 12, 16, 2
	table := n * clocks
	amount := float64(weight)
	if fold == "mean-changes" {
		amount /= float64(n)
	}
	var left atomic.Int32
	away := make([]atomic.Bool, n)
	check(t, run(t.Context(), inmem.New(n), func(ctx context.Context, w *libmalt.World) error {
		v, array, err := numbers(ctx, w, parts*table, 0, options)
		if err != nil {
			return err
		}
		r := rand.New(rand.NewPCG(uint64(n), uint64(w.Rank())))
		last := make([]uint64, n)
		for c := range steps {
			time.Sleep(pace(w.Rank(), r)) // the computation
			for q := range parts {
				array[q*table+w.Rank()*clocks+c]++
			}
			bound := slack
			var folded int
			if slack == varied {
				bound = r.IntN(5)
				folded, err = v.SyncSlack(ctx, weight, uint64(bound))
			} else {
				folded, err = v.Sync(ctx, weight)
			}
			if err != nil {
				return err
			}
			if n == 1 { // the array is left as it is: G1
				if array[c] != 1 {
					return fmt.Errorf("alone the array is %v", array)
				}
				continue
			}
			upTo, err := everywhere(array, parts, n, amount)
			if err != nil {
				return err
			}
			age, news := 0, 0
			for i, a := range upTo {
				behind := c + 1 - int(a)
				if i != w.Rank() && a > last[i] {
					news++
				}
				switch {
				case i == w.Rank() && behind != 0:
					return fmt.Errorf("at clock %d own changes up to %d", c+1, a)
				case a < last[i]:
					return fmt.Errorf("rank %d: changes up to %d after %d", i, a, last[i])
				case !away[i].Load() && (behind > bound || consistency == "bsp" && behind != 0):
					return fmt.Errorf("at clock %d, slack %d: changes of rank %d up to %d", c+1, bound, i, a)
				case !away[i].Load():
					age = max(age, behind)
				}
			}
			if v.Age() < uint64(age) || v.Age() > uint64(bound) || left.Load() == 0 && v.Age() != uint64(age) {
				return fmt.Errorf("at clock %d: age %d, changes up to %v", c+1, v.Age(), upTo)
			}
			if folded != news {
				return fmt.Errorf("at clock %d: sync returned %d, changes up to %v after %v", c+1, folded, upTo, last)
			}
			last = upTo
		}
		left.Add(1)
		away[w.Rank()].Store(true)
		if err := v.AllReduce(ctx, fold); err != nil || n == 1 {
			return err
		}
		upTo, err := everywhere(array, parts, n, amount)
		if err == nil && slices.Min(upTo) < steps {
			err = fmt.Errorf("in the end changes up to %v", upTo)
		}
		return err
	}))
}

// TestG13NothingIsLost: after an allreduce with the fold of changes each array is the start
// values and all changes of all ranks, each times the weight of that rank, of which some sync seldom, or never, or
// stop early; then all begins again. A broadcast and an allreduce of another kind begin again with their values;
// to configure the vector loses nothing.
func TestG13NothingIsLost(t *testing.T) {
	const size, start = 3000, 7 // several blocks
	sizes := []int{2, 3, 5, 6}
	if testing.Short() {
		sizes = []int{3}
	}
	for _, ranks := range []struct {
		name string
		make func(t *testing.T, n int) []rdma.Transport
	}{
		{"inmem", func(_ *testing.T, n int) []rdma.Transport { return inmem.New(n) }},
		{"shm", func(t *testing.T, n int) []rdma.Transport { return shared(t, n) }},
		{"tcp", func(t *testing.T, n int) []rdma.Transport { return overTCP(t, n) }},
	} {
		for _, consistency := range []string{"bsp", "ssp:2", "async", "ssp:0 graph=butterfly", "ssp:2 graph=butterfly", "async graph=butterfly", "ssp:2 graph=shards", "async graph=shards:1", "ssp:0 graph=shards:2/1", "ssp:0 graph=shards:2", "ssp:2 graph=shards sparse=model filter=dvf:9", "async graph=shards:2/1 sparse=model filter=top:3%"} {
			for _, n := range sizes {
				t.Run(fmt.Sprintf("%s/%s/%d", ranks.name, consistency, n), func(t *testing.T) {
					check(t, run(background(t), ranks.make(t, n), func(ctx context.Context, w *libmalt.World) error {
						v, array, err := numbers(ctx, w, size, start, "fold=sum-changes consistency="+consistency)
						if err != nil {
							return err
						}
						want := float64(start)
						weight := func(of int) float64 { return float64(1 + of) } // of all syncs of a rank
						change := func(of int, by float64) {
							if want += by * weight(of); of == w.Rank() {
								for i := range array {
									array[i] += by
								}
							}
						}
						all := func(what string, want float64) error {
							for i, x := range array {
								if x != want {
									return fmt.Errorf("%s: element %d is %v, want %v", what, i, x, want)
								}
							}
							return nil
						}
						for era := range 3 {
							for r := range n {
								for c := range r * 3 { // rank 0 never syncs
									change(r, float64(1+r+10*c+era))
									if r == w.Rank() {
										if _, err := v.Sync(ctx, weight(r)); err != nil {
											return err
										}
									}
								}
								change(r, float64(100+r)) // goes with the allreduce
							}
							if err := v.AllReduce(ctx, "sum-changes"); err != nil {
								return err
							}
							if err := all("sum", want); err != nil {
								return err
							}
						}
						change(1, 5)
						if _, err := v.Sync(ctx, weight(w.Rank())); err != nil {
							return err
						}
						change(0, 3)
						if !strings.Contains(consistency, "graph=") {
							if err := v.Configure(ctx, "consistency=ssp:4"); err != nil {
								return err
							}
						}
						change(1, 2)
						if err := v.AllReduce(ctx, "sum-changes"); err != nil {
							return err
						}
						if err := all("after configure", want); err != nil {
							return err
						}
						array[0] = float64(w.Rank()) // lost: the values of rank 0 replace it
						if err := v.Broadcast(ctx, 0); err != nil {
							return err
						}
						if array[0] != 0 {
							return fmt.Errorf("broadcast: %v", array[0])
						}
						array[0] = want
						change(1, 1)
						want -= weight(1) - 1 // a maximum has none
						if err := v.AllReduce(ctx, "max"); err != nil {
							return err
						}
						if err := all("max", want); err != nil {
							return err
						}
						change(0, 4)
						want += 4 * (3 - weight(0))
						if err := v.AllReduceWeight(ctx, "sum-changes", 3); err != nil {
							return err
						}
						return all("after max", want)
					}))
				})
			}
		}
	}
}

// TestChangesBesideASync: what the loop changes between a scatter and a gather stays, and
// goes with the next scatter.
func TestChangesBesideASync(t *testing.T) {
	for _, graph := range []string{"all", "butterfly", "shards", "shards:1"} {
		job(t, 2, func(ctx context.Context, w *libmalt.World) error {
			v, array, err := numbers(ctx, w, 1, 1, "fold=sum-changes consistency=ssp:0 graph="+graph)
			if err != nil {
				return err
			}
			for _, step := range []struct{ before, between, want float64 }{{1, 10, 1 + 2 + 10}, {100, 0, 1 + 2 + 20 + 200}} {
				array[0] += step.before
				if _, err := v.Scatter(ctx, nil, 1); err != nil {
					return err
				}
				array[0] += step.between
				if _, err := v.Gather(ctx, ""); err != nil {
					return err
				}
				if array[0] != step.want {
					return fmt.Errorf("%v, want %v", array[0], step.want)
				}
				if err := w.Barrier(ctx); err != nil { // the other has not sent more yet
					return err
				}
			}
			return nil
		})
	}
}

// TestG12BesideCalls: a rank that is in a collective call is not waited for, but what it had changed before
// is. The age is that of the oldest change that is missing. In virtual time.
func TestG12BesideCalls(t *testing.T) {
	const n, rounds, most = 4, 8, 4
	const table = n * rounds * most
	for seed, graph := range []string{"butterfly:2x2", "shards:1", "shards", "shards:1/1", "shards:2/2", "all"} {
		g, err := graphs.Parse(graph, n)
		if err != nil {
			t.Fatal(err)
		}
		parts := max(1, g.Keepers())
		for consistency, slack := range map[string]uint64{"bsp": 0, "ssp:0": 0, "ssp:2": 2, "async": math.MaxUint64} {
			if consistency == "bsp" && graph != "all" {
				continue
			}
			plan := rand.New(rand.NewPCG(uint64(seed), slack))
			made, level := make([][]uint64, n), uint64(0) // by rank: the clocks of its changes
			counts := make([][n]int, rounds)
			for i := range counts {
				highest := 0
				for r := range n {
					counts[i][r] = plan.IntN(most + 1)
					for k := range counts[i][r] {
						made[r] = append(made[r], level+uint64(k)+1)
					}
					highest = max(highest, counts[i][r])
				}
				level += uint64(highest)
			}
			body := func(ctx context.Context, w *libmalt.World) error {
				me, own := w.Rank(), 0
				v, array, err := numbers(ctx, w, parts*table, 0, "fold=sum-changes graph="+graph+" consistency="+consistency)
				if err != nil {
					return err
				}
				r := rand.New(rand.NewPCG(uint64(seed), uint64(me)))
				for i := range counts {
					for range counts[i][me] {
						time.Sleep(time.Duration(r.IntN(3)) * time.Second)
						for q := range parts {
							array[q*table+me*rounds*most+own]++
						}
						own++
						if _, err := v.Sync(ctx, 1); err != nil {
							return err
						}
						upTo, err := everywhere(array, parts, n, 1)
						if err != nil {
							return err
						}
						if v.Clock() != made[me][own-1] {
							return fmt.Errorf("rank %d is at clock %d, not %d", me, v.Clock(), made[me][own-1])
						}
						for o, there := range upTo {
							if o == me || int(there) == len(made[o]) || made[o][there] > v.Clock() {
								continue
							}
							if behind := v.Clock() - made[o][there] + 1; behind > slack || behind > v.Age() {
								return fmt.Errorf("rank %d at clock %d: the change of rank %d at clock %d is missing, age %d", me, v.Clock(), o, made[o][there], v.Age())
							}
						}
					}
					if i%4 == 3 {
						err = v.AllReduce(ctx, "sum-changes")
					} else {
						err = w.Barrier(ctx)
					}
					if err != nil {
						return err
					}
				}
				return nil
			}
			t.Run(graph+", "+consistency, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { check(t, run(t.Context(), inmem.New(n), body)) })
			})
		}
	}
}

// TestNewsOfASync: a sync returns from how many ranks it has brought changes that were not there:
// what a collective call lifts the clock of a rank to, or the closing of the vector, is none.
func TestNewsOfASync(t *testing.T) {
	for _, graph := range []string{"all", "butterfly"} {
		job(t, 2, func(ctx context.Context, w *libmalt.World) error {
			v, array, err := numbers(ctx, w, 1, 0, "fold=sum-changes consistency=async graph="+graph)
			if err != nil {
				return err
			}
			change := func(rank, want int) {
				if err == nil && w.Rank() == rank {
					array[0]++
					if news, failed := v.Sync(ctx, 1); failed != nil || news != want {
						err = fmt.Errorf("%s: at clock %d sync returned %d, %v, want %d", graph, v.Clock(), news, failed, want)
					}
				}
				err = errors.Join(err, w.Barrier(ctx))
			}
			change(1, 0)
			change(0, 1)
			change(0, 0)
			change(1, 1)
			change(0, 1)
			change(0, 0) // rank 1 is behind, and the barrier lifts its clock
			change(0, 0)
			if w.Rank() == 1 {
				err = errors.Join(err, v.Close())
			}
			err = errors.Join(err, w.Barrier(ctx))
			change(0, 0)
			return err
		})
	}
}

// TestTimedOutSyncHasSent: a sync of changes that times out has sent; the next goes on.
func TestTimedOutSyncHasSent(t *testing.T) {
	for _, graph := range []string{"all", "butterfly", "shards", "shards:1"} {
		timedOut(t, graph)
	}
}

func timedOut(t *testing.T, graph string) {
	gate := make(chan struct{})
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		v, array, err := numbers(ctx, w, 2, 0, "fold=sum-changes consistency=ssp:0 graph="+graph)
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			<-gate
		}
		for c := range 2 {
			array[w.Rank()]++
			short, stop := ctx, context.CancelFunc(func() {})
			if w.Rank() == 0 && c == 0 {
				short, stop = context.WithTimeout(ctx, time.Millisecond)
			}
			_, err := v.Sync(short, 1)
			stop()
			if w.Rank() == 0 && c == 0 {
				if err := wantErr(err, libmalt.ErrTimeout); err != nil {
					return err
				}
				close(gate)
			} else if err != nil {
				return err
			}
		}
		if array[0] != 2 || array[1] != 2 {
			return fmt.Errorf("%v, want 2 and 2", array)
		}
		return nil
	})
}

// TestSlackOfOneSync: a sync waits as its own slack says, also of other folds.
func TestSlackOfOneSync(t *testing.T) {
	for _, fold := range []string{"mean", "sum-changes"} {
		gate := make(chan struct{})
		job(t, 2, func(ctx context.Context, w *libmalt.World) error {
			v, _, err := numbers(ctx, w, 1, 0, "consistency=async fold="+fold)
			if err != nil {
				return err
			}
			if w.Rank() == 1 {
				<-gate
				_, err := v.Sync(ctx, 1)
				return err
			}
			for _, slack := range []uint64{1, 2} {
				if _, err := v.SyncSlack(ctx, 1, slack); err != nil {
					return err
				}
			}
			short, stop := context.WithTimeout(ctx, time.Millisecond)
			_, err = v.SyncSlack(short, 1, 2)
			stop()
			close(gate)
			return wantErr(err, libmalt.ErrTimeout)
		})
	}
}

// TestChangesOfTheDead: where survivors go on, the last total of a dead rank counts, on all
// alike, in syncs and in an allreduce; what it had not sent does not.
func TestChangesOfTheDead(t *testing.T) {
	for _, consistency := range []string{"bsp", "ssp:1", "async"} {
		survivors(t, 3, 1, func(ctx context.Context, w *libmalt.World) error {
			v, array, err := numbers(ctx, w, 3, 0, "fold=sum-changes consistency="+consistency)
			if err != nil {
				return err
			}
			for range 3 {
				array[w.Rank()]++
				if _, err := v.Sync(ctx, 1); err != nil {
					return err
				}
			}
			if array[w.Rank()]++; w.Rank() == 1 {
				return errKilled
			}
			for range 4 {
				if _, err := v.Sync(ctx, 1); err != nil {
					return err
				}
				array[w.Rank()]++
			}
			for era := range 2 { // in the second its total is part of the values
				if err := v.AllReduce(ctx, "sum-changes"); err != nil {
					return err
				}
				if !slices.Equal(array, []float64{float64(8 + era), 3, float64(8 + era)}) {
					return fmt.Errorf("%s: era %d: %v", consistency, era, array)
				}
				array[w.Rank()]++
			}
			return nil
		})
	}
}

// TestChangesAreRefused: each option that does not go with changes is refused with one that
// does.
func TestChangesAreRefused(t *testing.T) {
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		refused := func(err error, words string) error {
			if err == nil || !strings.Contains(err.Error(), words) {
				return fmt.Errorf("%v: expected %q", err, words)
			}
			return nil
		}
		for options, words := range map[string]string{
			"graph=ring":             "Take graph=all, butterfly or shards",
			"graph=butterfly":        "Take consistency=ssp:0",
			"graph=shards":           "Take consistency=ssp:0",
			"consistency=notify-ack": "Take consistency=bsp, ssp:2 or async",
			"sparse=model":           "Take graph=shards with sparse=model",
			"sparse=gradient graph=shards consistency=async": "Take sparse=model",
			"start=own": "Take start=same",
		} {
			_, err := vector(ctx, w, 3, "fold=mean-changes "+options)
			if err := refused(err, words); err != nil {
				return err
			}
		}
		v, err := vector(ctx, w, 3, "fold=mean-changes consistency=async")
		if err != nil {
			return err
		}
		plain, err := vector(ctx, w, 3, "")
		if err != nil {
			return err
		}
		staged, err := vector(ctx, w, 3, "fold=mean-changes consistency=async graph=butterfly")
		if err != nil {
			return err
		}
		_, stagedTo := staged.Scatter(ctx, []int{1 - w.Rank()}, 1)
		_, heavy := staged.Sync(ctx, math.Inf(1))
		_, to := v.Scatter(ctx, []int{1 - w.Rank()}, 1)
		_, rows := v.ScatterRows(ctx, []int64{1}, nil, 1)
		_, other := v.Gather(ctx, "mean")
		_, changes := plain.Gather(ctx, "sum-changes")
		_, function := v.Begin(ctx)
		_, slack := plain.SyncSlack(ctx, 1, 2)
		_, large := v.SyncSlack(ctx, 1, 1<<40)
		return errors.Join(
			refused(to, "Leave to= out"), refused(rows, "Leave rows= out"), refused(other, "Leave fold= out"),
			refused(changes, "make another vector"), refused(function, "fold=mean"), refused(slack, "consistency=ssp:2 or async"),
			refused(stagedTo, "Leave them out"), refused(heavy, "weight=+Inf"), refused(staged.Configure(ctx, "consistency=ssp:2"), "Make a new vector"),
			refused(large, "from 0 to 65536"), refused(plain.AllReduce(ctx, "sum-changes"), "mean"),
			refused(v.AllReduce(ctx, "sum-changes"), "mean"), refused(v.Configure(ctx, "fold=mean"), "another vector"),
			refused(plain.Configure(ctx, "fold=sum-changes"), "another vector"), refused(v.Configure(ctx, "graph=ring"), "graph=all"),
		)
	})
}

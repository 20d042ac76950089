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
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

const lineOf = 8 // elements of a cache line

// TestShardsBesideASlowRank: in async the changes of the others come, whether or not a rank syncs,
// be it the keeper: within the time of two pushes, or two sums of a stage of butterfly. In virtual time.
func TestShardsBesideASlowRank(t *testing.T) {
	const steps, behind = 20, 2
	for _, c := range []struct {
		name, graph string
		size, slow  int
	}{{"shards:1", "shards:1", 3, 2}, {"shards:1, the keeper", "shards:1", 3, 0}, {"shards", "shards", 3, 1}, {"butterfly", "butterfly:2x2", 4, 1}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				check(t, run(t.Context(), inmem.New(c.size), func(ctx context.Context, w *libmalt.World) error {
					v, array, err := numbers(ctx, w, 3*lineOf, 0, "fold=sum-changes consistency=async graph="+c.graph)
					if err != nil {
						return err
					}
					if w.Rank() == c.slow {
						time.Sleep(steps * time.Second)
						return nil
					}
					for at := 1; at <= steps; at++ {
						time.Sleep(time.Second)
						for line := range 3 {
							array[line*lineOf+w.Rank()]++
						}
						if _, err := v.Sync(ctx, 1); err != nil {
							return err
						}
						for i := range 3 * lineOf {
							if other := i % lineOf; other < c.size && other != c.slow && int(array[i]) < at-behind {
								return fmt.Errorf("at clock %d there are %v changes of rank %d", at, array[i], other)
							}
						}
					}
					return nil
				}))
			})
		})
	}
}

// TestShardsWhoseKeeperGoesAway: a keeper that goes into a collective call, and has been waited for
// before, publishes its part; in it there may be all that the others wait for. In virtual time.
func TestShardsWhoseKeeperGoesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check(t, run(t.Context(), inmem.New(3), func(ctx context.Context, w *libmalt.World) error {
			v, array, err := numbers(ctx, w, 1, 0, "fold=sum-changes consistency=ssp:0 graph=shards:1")
			if err != nil {
				return err
			}
			short, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			if w.Rank() == 0 {
				time.Sleep(time.Second)
				return v.AllReduce(short, "sum-changes")
			}
			array[0]++
			if _, err := v.Sync(short, 1); err != nil {
				return err
			}
			return v.AllReduce(short, "sum-changes")
		}))
	})
}

// TestShardsServe: a keeper that closes the vector, or leaves the job, goes on until the others
// have closed it, too, and the last changes of any rank that does arrive.
func TestShardsServe(t *testing.T) {
	const n, steps = 4, 30
	for _, early := range []string{"close", "leave"} {
		t.Run(early, func(t *testing.T) {
			job(t, n, func(ctx context.Context, w *libmalt.World) error {
				v, array, err := numbers(ctx, w, n*lineOf, 0, "fold=sum-changes graph=shards:2 consistency=ssp:0")
				if err != nil {
					return err
				}
				last := func(rank int) int {
					if rank == 1 || rank == 2 { // one keeps a part
						return 1 + rank
					}
					return steps
				}
				for c := 1; c <= last(w.Rank()); c++ {
					for line := range n {
						array[line*lineOf+w.Rank()]++
					}
					if _, err := v.Sync(ctx, 1); err != nil {
						return err
					}
					for line := range n {
						for r, x := range array[line*lineOf:][:n] {
							if least := min(c, last(r)); int(x) < least {
								return fmt.Errorf("after sync %d there are %v changes of rank %d in line %d", c, x, r, line)
							}
						}
					}
				}
				if early == "close" {
					if err := v.Close(); err != nil {
						return err
					}
				}
				return w.Close()
			})
		})
	}
}

// TestShardsWithoutARankThatHasLeft: each rank in turn leaves a tree although others need it. Those below it get an
// error in a sync, and end. So do the changes that they had pushed no further: the others go on, with all that each rank
// had scattered, and wait for no rank that has ended. In virtual time, each rank a little slower than the one before.
func TestShardsWithoutARankThatHasLeft(t *testing.T) {
	const steps, step = 20, time.Second
	for _, c := range []struct {
		graph    string
		n, size  int
		finishes int // how many ranks do, of all that make steps in any of the jobs
		options  string
	}{
		{"shards:1/1", 4, 3 * lineOf, 6, ""},
		{"shards:2/1", 4, 4, 6, ""}, // rank 1 keeps an empty part
		{"shards:2/1", 4, 4, 6, " sparse=model"},
		{"shards:2/1", 3, 1, 3, ""},
		{"shards:2/2", 6, 4, 22, ""},
		{"shards:2/1", 5, 2 * lineOf, 1, ""},
		{"shards:3/1", 3, 3 * lineOf, 0, ""},
		{"shards:2", 4, 4, 9, ""},
	} {
		for _, consistency := range []string{"ssp:0", "ssp:3", "async"} {
			t.Logf("%s%s, %d ranks, %d elements, %s", c.graph, c.options, c.n, c.size, consistency)
			synctest.Test(t, func(t *testing.T) {
				finished := 0
				for leaves := range c.n {
					begun := time.Now()
					var mu sync.Mutex
					made := make([]int, c.n)
					check(t, run(t.Context(), inmem.New(c.n), func(ctx context.Context, w *libmalt.World) error {
						r := w.Rank()
						v, array, err := numbers(ctx, w, c.size, 0, "fold=sum-changes graph="+c.graph+" consistency="+consistency+c.options)
						if err == nil {
							err = w.Barrier(ctx)
						}
						if err != nil {
							return err
						}
						if r == leaves {
							short, stop := context.WithTimeout(ctx, 5*step)
							defer stop()
							return errors.Join(v.Close(), w.Leave(short))
						}
						for range steps {
							time.Sleep(step + time.Duration(r)*step/100)
							mu.Lock()
							made[r]++
							mu.Unlock()
							for i := range array {
								array[i] += math.Pow(64, float64(r))
							}
							if _, err := v.Sync(ctx, 1); err != nil {
								return errors.Join(wantErr(err, libmalt.ErrLeft), v.Close())
							}
						}
						time.Sleep(steps * step)
						if _, err := v.Gather(ctx, ""); err != nil {
							return errors.Join(wantErr(err, libmalt.ErrLeft), v.Close())
						}
						mu.Lock()
						defer mu.Unlock()
						finished++
						for i, x := range array {
							for o := range c.n {
								if got := int(x/math.Pow(64, float64(o))) % 64; got != made[o] {
									return fmt.Errorf("without rank %d element %d has %d of %d changes of rank %d", leaves, i, got, made[o], o)
								}
							}
						}
						return nil
					}))
					if took := time.Since(begun); took > 3*steps*step {
						t.Errorf("without rank %d it takes %v", leaves, took)
					}
				}
				if finished != c.finishes {
					t.Errorf("%d ranks finish, want %d", finished, c.finishes)
				}
			})
		}
	}
}

// TestShardsLoseTheirKeeper: the death of a rank that keeps a part, or passes it on to others through
// others, ends the job, also where nobody waits.
func TestShardsLoseTheirKeeper(t *testing.T) {
	for _, c := range []struct {
		consistency, graph string
		dies               int
		last               int // who hears of it through the others
		says               string
	}{
		{"ssp:2", "shards:1", 0, 1, "part 0 of the vector is lost with it"},
		{"async", "shards:2", 1, 2, "part 1 of the vector is lost with it"},
		{"async", "shards:1/1", 1, 3, "it passed on a part of the vector"}, // 0 to 1 to 2 to 3
	} {
		t.Run(c.consistency+", "+c.graph, func(t *testing.T) {
			var gone atomic.Bool
			heard := make(chan struct{}) // the others stay until then
			errs := jobErrors(t, 4, func(ctx context.Context, w *libmalt.World) error {
				v, _, err := numbers(ctx, w, 3*lineOf, 0, "fold=sum-changes graph="+c.graph+" consistency="+c.consistency)
				if err != nil {
					return err
				}
				if w.Rank() == c.last {
					defer close(heard)
				}
				for after := false; !after; {
					after = gone.Load()
					if _, err := v.Sync(ctx, 1); err != nil {
						return err
					}
					if w.Rank() == c.dies && v.Clock() == 3 {
						w.Abort(rdma.HasFailed(c.dies, "of this test"))
						gone.Store(true)
						break
					}
				}
				if w.Rank() != c.last {
					<-heard
					return nil
				}
				return errors.New("did not hear of it")
			})
			if err := errs[c.last]; err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("rank %d: %v", c.last, err)
			}
		})
	}
}

// ended is a transport whose goroutines end with the rank, as they do with a process.
type ended struct {
	rdma.Viewed
	*lifeOf
}

type lifeOf struct {
	sync.Mutex
	over bool
}

func (m ended) Sub() (rdma.Transport, error) {
	s, err := m.Viewed.Sub()
	if err != nil {
		return nil, err
	}
	return endedSub{s, m.lifeOf}, nil
}

type endedSub struct {
	rdma.Transport
	*lifeOf
}

func (s endedSub) Wait(ctx context.Context, step func() bool) error {
	return s.Transport.Wait(ctx, func() bool {
		s.Lock()
		defer s.Unlock()
		return !s.over && step()
	})
}

func (l *lifeOf) end() {
	l.Lock()
	defer l.Unlock()
	l.over = true
}

// TestG12ShardsAmongSurvivors: ranks that keep no part die before a scatter, after it or after a sync. The others go
// on, each with every change once. Of a dead rank they have, after an allreduce, the same changes in each part: all
// that one of them has seen.
func TestG12ShardsAmongSurvivors(t *testing.T) {
	const steps, rounds, clocks = 5, 2, 16
	for seed := range uint64(48) {
		rnd := rand.New(rand.NewPCG(seed, 16))
		n, keepers := []int{3, 5}[seed%2], 1+int(seed/2%2)
		consistency := []string{"ssp:0", "ssp:2", "async"}[seed%3]
		options := fmt.Sprintf("fold=sum-changes graph=shards:%d consistency=%s", keepers, consistency)
		if rnd.IntN(2) == 0 {
			options += " sparse=model"
		}
		idle := rnd.IntN(2) == 0                       // rank 0 keeps a part, and nothing else
		dies, moment := make([]int, n), make([]int, n) // before which change; 0: never
		for _, r := range rnd.Perm(n - keepers)[:1+rnd.IntN(n-keepers)] {
			dies[keepers+r], moment[keepers+r] = 1+rnd.IntN(rounds*steps), rnd.IntN(3)
		}
		made := func(rank, round int) (changes int) {
			switch changes = (round + 1) * steps; {
			case rank == 0 && idle:
				return 0
			case dies[rank] > 0 && dies[rank] <= changes:
				return dies[rank] - 1 + min(moment[rank], 1)
			}
			return changes
		}
		t.Run(fmt.Sprintf("%d, %d ranks, %s", seed, n, options), func(t *testing.T) {
			lives := make([]lifeOf, n)
			var mu sync.Mutex
			seen, after := make([][]uint64, keepers), make([]string, rounds) // by part and rank; what all have after a round
			for q := range seen {
				seen[q] = make([]uint64, n)
			}
			mortally := func(tr rdma.Transport) rdma.Transport { return ended{tr.(rdma.Viewed), &lives[tr.Rank()]} }
			survivorsOn(t, inmem.New(n), 1, mortally, func(ctx context.Context, w *libmalt.World) error {
				r, table := w.Rank(), n*clocks
				v, array, err := numbers(ctx, w, keepers*table, 0, options)
				if err != nil {
					return err
				}
				killed := func() error {
					lives[r].end()
					return errKilled
				}
				// look decodes the array, with what it had at least before.
				look := func(what string, least func(q, rank int) uint64) error {
					mu.Lock()
					defer mu.Unlock()
					for q := range keepers {
						upTo, err := counted(array[q*table:(q+1)*table], n, 1)
						if err != nil {
							return fmt.Errorf("%s: part %d: %w", what, q, err)
						}
						for o, a := range upTo {
							if a < least(q, o) {
								return fmt.Errorf("%s: part %d has %d changes of rank %d, and %d were to be there", what, q, a, o, least(q, o))
							}
							if o != r {
								seen[q][o] = max(seen[q][o], a)
							}
						}
					}
					return nil
				}
				own := 0
				for round := range rounds {
					for range steps {
						if r == 0 && idle {
							break
						}
						if own++; dies[r] == own && moment[r] == 0 {
							return killed()
						}
						for q := range keepers {
							array[q*table+r*clocks+own-1]++
						}
						if _, err := v.Scatter(ctx, nil, 1); err != nil {
							return err
						}
						if dies[r] == own && moment[r] == 1 {
							return killed()
						}
						if _, err := v.Gather(ctx, ""); err != nil {
							return err
						}
						if err := look(fmt.Sprint("clock ", own), func(_, o int) uint64 {
							if o == r {
								return uint64(own)
							}
							return 0
						}); err != nil {
							return err
						}
						if dies[r] == own {
							return killed()
						}
					}
					for o := range n {
						if m := made(o, round); consistency == "ssp:0" && dies[o] > 0 && own > m && slices.Contains(w.Alive(), o) {
							return fmt.Errorf("at clock %d rank %d takes part, which died at %d", own, o, m)
						}
					}
					if err := v.AllReduce(ctx, "sum-changes"); err != nil {
						return err
					}
					if err := look(fmt.Sprint("round ", round), func(q, o int) uint64 {
						if m := made(o, round); dies[o] == 0 || dies[o] > (round+1)*steps {
							return uint64(m)
						}
						return seen[q][o]
					}); err != nil {
						return err
					}
					mu.Lock()
					if after[round] == "" {
						after[round] = fmt.Sprint(array)
					}
					same := after[round] == fmt.Sprint(array)
					mu.Unlock()
					if !same {
						return fmt.Errorf("after round %d: %v, another rank has %s", round, array, after[round])
					}
				}
				return nil
			})
		})
	}
}

// TestG5ShardsWithoutTheirKeeper: where the others could go on without a rank, they cannot without one that kept a
// part, in any call that needs it.
func TestG5ShardsWithoutTheirKeeper(t *testing.T) {
	for name, call := range map[string]func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error{
		"sync": func(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error {
			for {
				if _, err := v.Sync(ctx, 1); err != nil {
					return err
				}
			}
		},
		"allreduce": func(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error {
			return v.AllReduce(ctx, "sum-changes")
		},
		"a new vector": func(ctx context.Context, w *libmalt.World, _ *libmalt.Vector) error {
			v, _, err := numbers(ctx, w, 10, 0, "fold=sum-changes graph=shards:1 consistency=ssp:0")
			if err != nil {
				return fmt.Errorf("it is not made: %w", err)
			}
			_, err = v.Sync(ctx, 1)
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			survivors(t, 3, 1, func(ctx context.Context, w *libmalt.World) error {
				v, _, err := numbers(ctx, w, 10, 0, "fold=sum-changes graph=shards:1 consistency=async")
				if err != nil {
					return err
				}
				if w.Rank() == 0 {
					return errKilled
				}
				err = call(ctx, w, v)
				if err == nil || !strings.Contains(err.Error(), "part 0 of the vector is lost with it: restart from a checkpoint") {
					return fmt.Errorf("got %v", err)
				}
				return wantDeath(err, 0)
			})
		})
	}
}

// TestShardsWithoutAWorker: one that dies before it has made the vector is not waited for, nor is one that dies after a
// sync; the next one says so.
func TestShardsWithoutAWorker(t *testing.T) {
	survivors(t, 4, 1, func(ctx context.Context, w *libmalt.World) error {
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if w.Rank() == 2 {
			return errKilled
		}
		v, array, err := numbers(ctx, w, 1, 0, "fold=sum-changes graph=shards:1 consistency=ssp:0")
		if err != nil {
			return err
		}
		array[0]++
		if _, err := v.Sync(ctx, 1); err != nil {
			return err
		}
		if array[0] != 3 {
			return fmt.Errorf("the sum is %v", array[0])
		}
		if w.Rank() == 3 {
			return errKilled
		}
		if _, err := v.Sync(ctx, 1); err != nil {
			return err
		}
		if alive := w.Alive(); !slices.Equal(alive, []int{0, 1}) {
			return fmt.Errorf("after the sync %v take part", alive)
		}
		return nil
	})
}

// TestShardsThatGoOn: which graphs do, where a job does.
func TestShardsThatGoOn(t *testing.T) {
	survivors(t, 4, 1, func(ctx context.Context, w *libmalt.World) error {
		for _, graph := range []string{"all", "shards:1", "shards:3", "shards:1/3"} {
			if _, _, err := numbers(ctx, w, 1, 0, "consistency=ssp:1 fold=sum-changes graph="+graph); err != nil {
				return fmt.Errorf("graph=%s: %w", graph, err)
			}
		}
		for _, graph := range []string{"shards:1/2", "shards:4", "shards", "butterfly"} {
			_, _, err := numbers(ctx, w, 1, 0, "consistency=ssp:1 fold=sum-changes graph="+graph)
			if err := refused(err, libmalt.ErrUnsupported, "graph=shards:1 on one machine can"); err != nil {
				return fmt.Errorf("graph=%s: %w", graph, err)
			}
		}
		return nil
	})
	same := func(tr rdma.Transport) rdma.Transport { return tr }
	survivorsOn(t, inmem.NewHosts(0, 0, 1), 1, same, func(ctx context.Context, w *libmalt.World) error {
		_, _, err := numbers(ctx, w, 1, 0, "consistency=ssp:1 fold=sum-changes graph=shards:1")
		if err := refused(err, libmalt.ErrUnsupported, "cannot go on"); err != nil {
			return fmt.Errorf("on two hosts: %w", err)
		}
		return nil
	})
}

// TestG5ShardsNameTheLate: an error names the rank that has not come, and none whose changes wait
// for it at the keeper. In virtual time.
func TestG5ShardsNameTheLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		check(t, run(t.Context(), inmem.New(4), func(ctx context.Context, w *libmalt.World) error {
			v, _, err := numbers(ctx, w, 4*lineOf, 0, "fold=sum-changes graph=shards:1 consistency=ssp:0")
			if err != nil {
				return err
			}
			if w.Rank() == 2 {
				time.Sleep(2 * time.Minute)
			}
			short, stop := context.WithTimeout(ctx, time.Minute)
			defer stop()
			_, err = v.Sync(short, 1)
			time.Sleep(time.Minute) // all have their error before one leaves because of it
			if w.Rank() == 2 {
				return nil
			}
			if err := wantErr(err, libmalt.ErrTimeout); err != nil {
				return err
			}
			if text := err.Error(); !strings.Contains(text, "rank 2") || strings.Contains(text, "rank 0 (") || strings.Contains(text, "rank 1 (") || strings.Contains(text, "rank 3 (") {
				return fmt.Errorf("it does not name rank 2 alone: %s", text)
			}
			return nil
		}))
	})
}

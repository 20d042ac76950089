package libmalt_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"malt/libmalt"
	"malt/libmalt/internal/core"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// told collects what the ranks of a job are told.
type told struct {
	mu  sync.Mutex
	all []string // in their order
}

func (s *told) by(w *libmalt.World) {
	w.OnTrouble(func(t libmalt.Trouble) {
		s.mu.Lock()
		defer s.mu.Unlock()
		switch t.Kind {
		case core.NotFinite:
			s.all = append(s.all, fmt.Sprintf("from %d", t.Rank))
		case core.Memlock:
			s.all = append(s.all, fmt.Sprintf("%s of %d: %d of %d", t.Of.Name, t.Rank, t.Limit, t.Need))
		case core.NoRDMA:
			s.all = append(s.all, fmt.Sprintf("%s, with %d: %v", t.Of.Name, t.Rank, t.Why))
		case core.Slow:
			s.all = append(s.all, fmt.Sprintf("%d is slow for %d", t.Rank, w.Rank()))
		}
	})
}

// TestNotFiniteNamesTheRank: each way to fold a dense vector names the rank that brought NaN, on
// at least one rank. Where that is not sent to all, ranks that get it later
// name the one that passed it on. No rank is told twice, nor of another vector,
// which has infinity on all.
func TestNotFiniteNamesTheRank(t *testing.T) {
	const culprit = 2
	for _, host := range [][]int{{0, 0, 0, 0}, {0, 0, 1, 1}, {0, 1, 2, 3}} {
		for _, options := range []string{
			"", "fold=sum", "consistency=ssp:0 graph=all", "consistency=notify-ack graph=ring", "graph=halton fold=max",
			"fold=sum-changes consistency=ssp:0", "fold=mean-changes", "fold=sum-changes consistency=ssp:0 graph=butterfly",
			"fold=mean-changes consistency=ssp:0 graph=shards", "fold=sum-changes consistency=ssp:0 graph=shards:1",
		} {
			for _, count := range []int{3, 5000, 300_000} { // one rank folds, all fold, hosts exchange
				for _, weight := range []float64{1, 3} {
					if testing.Short() && count > 5000 && (host[1] == 1 || host[2] == 0 || weight > 1) {
						continue // on two hosts, ranks are near one another and far
					}
					t.Run(fmt.Sprint(host, options, count, weight), func(t *testing.T) {
						var said told
						check(t, run(background(t), inmem.NewHosts(host...), func(ctx context.Context, w *libmalt.World) error {
							said.by(w)
							v, err := vector(ctx, w, count, options)
							if err != nil {
								return err
							}
							other, err := vector(ctx, w, count, options)
							if err != nil {
								return err
							}
							if !strings.Contains(options, "changes") { // else all bring it
								fill(other.Bytes(), float32(math.Inf(1)))
							}
							for clock := 1; clock <= 6; clock++ {
								if clock == 3 && w.Rank() == culprit {
									binary.LittleEndian.PutUint32(v.Bytes()[4*(count-1):], math.Float32bits(float32(math.NaN())))
								}
								if _, err := v.Sync(ctx, 1+(weight-1)*float64(w.Rank()%2)); err != nil {
									return err
								}
								if _, err := other.Sync(ctx, 1); err != nil {
									return err
								}
							}
							return w.Barrier(ctx)
						}))
						toAll := !strings.Contains(options, "ring") && !strings.Contains(options, "halton") && !strings.Contains(options, "butterfly") && !strings.Contains(options, "shards")
						for i, s := range said.all {
							if (i == 0 || toAll) && s != "from 2" {
								t.Errorf("told: %q", said.all)
							}
						}
						if len(said.all) == 0 || len(said.all) > len(host) {
							t.Errorf("told: %q", said.all)
						}
					})
				}
			}
		}
	}
}

// TestSparseNamesTheRank: where rows are long, each rank that folds the row names the rank that brought NaN, once,
// also when the row comes again after folds of other rows.
func TestSparseNamesTheRank(t *testing.T) {
	for _, weight := range []float64{1, 3} {
		t.Run(fmt.Sprint(weight), func(t *testing.T) {
			var said told
			check(t, run(background(t), inmem.New(3), func(ctx context.Context, w *libmalt.World) error {
				said.by(w)
				v, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: 1280, Row: 128}}, "", "sparse=model")
				if err != nil {
					return err
				}
				for clock := range 6 {
					put(v.Bytes(), 128*(clock+w.Rank()), float32(clock+w.Rank()))
					if clock%2 == 0 && clock > 0 && w.Rank() == 2 {
						put(v.Bytes(), 1279-clock, float32(math.NaN()))
					}
					if _, err := v.Sync(ctx, 1+(weight-1)*float64(w.Rank()%2)); err != nil {
						return err
					}
				}
				return nil
			}))
			if want := []string{"from 2", "from 2"}; !slices.Equal(said.all, want) {
				t.Errorf("told: %q, want %q", said.all, want)
			}
		})
	}
}

// lacking is a transport that does without RDMA.
type lacking struct {
	rdma.Transport
	lack rdma.Lack
}

func (l lacking) Lacks() *rdma.Lack { return &l.lack }

// TestLackOfRDMAIsTold: once for each vector, by its first call.
func TestLackOfRDMAIsTold(t *testing.T) {
	for want, lack := range map[string]rdma.Lack{
		" of 1: 65536 of 23068672":       {Rank: 1, Limit: 64 << 10, Need: 22 << 20},
		", with 0: a write does not end": {Rank: 0, Why: errors.New("a write does not end")},
	} {
		lackIsTold(t, lack, want)
	}
}

func lackIsTold(t *testing.T, lack rdma.Lack, want string) {
	var said told
	ranks := inmem.New(2)
	ranks[1] = lacking{ranks[1], lack}
	check(t, run(background(t), ranks, func(ctx context.Context, w *libmalt.World) error {
		said.by(w)
		v, err := vector(ctx, w, 3, "")
		for range 3 {
			if err == nil {
				_, err = v.Sync(ctx, 1)
			}
		}
		return err
	}))
	if len(said.all) != 1 || !strings.HasSuffix(said.all[0], want) {
		t.Errorf("told: %q, expected %q", said.all, want)
	}
}

// TestAllReduceNamesTheRank: also where it goes by messages.
func TestAllReduceNamesTheRank(t *testing.T) {
	var said told
	check(t, run(background(t), inmem.New(3), func(ctx context.Context, w *libmalt.World) error {
		said.by(w)
		v, err := vector(ctx, w, 300_000, "graph=ring consistency=async")
		if err != nil {
			return err
		}
		for clock := range 3 {
			if clock == 1 && w.Rank() == 2 {
				binary.LittleEndian.PutUint32(v.Bytes()[4*299_999:], math.Float32bits(float32(math.NaN())))
			}
			if err := v.AllReduce(ctx, "mean"); err != nil {
				return err
			}
		}
		return nil
	}))
	if want := []string{"from 2", "from 2", "from 2"}; !slices.Equal(said.all, want) {
		t.Errorf("told: %q, want %q", said.all, want)
	}
}

// TestSlowRanksAreTold: in async, in virtual time, a rank is told of a sender that makes less
// than half as many syncs for long, once; not of one that is a little slower, nor of one that
// has ended, nor in another mode.
func TestSlowRanksAreTold(t *testing.T) {
	for _, c := range []struct {
		consistency string
		pace        time.Duration // of rank 1; the others take a second a sync
		syncs       int           // of rank 1
		want        []string
	}{
		{"async", 3 * time.Second, 200, []string{"1 is slow for 0", "1 is slow for 2"}},
		{"async", 1900 * time.Millisecond, 200, []string{}},
		{"async", time.Second, 20, []string{}},
		{"ssp:1", 3 * time.Second, 100, []string{}},
	} {
		t.Run(fmt.Sprint(c.consistency, c.pace, c.syncs), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var said told
				check(t, run(t.Context(), inmem.New(3), func(ctx context.Context, w *libmalt.World) error {
					said.by(w)
					v, err := vector(ctx, w, 10, "consistency="+c.consistency)
					if err != nil {
						return err
					}
					pace, syncs := time.Second, 100
					if w.Rank() == 1 {
						pace, syncs = c.pace, c.syncs
					}
					for range syncs {
						time.Sleep(pace)
						if _, err := v.Sync(ctx, 1); err != nil {
							return err
						}
					}
					return nil
				}))
				if slices.Sort(said.all); !slices.Equal(said.all, c.want) {
					t.Errorf("told: %q, want %q", said.all, c.want)
				}
			})
		})
	}
}

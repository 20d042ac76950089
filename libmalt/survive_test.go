package libmalt_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

var errKilled = errors.New("killed by the test")

// survivors runs a job that goes on while at least least ranks live. A body that returns
// errKilled has ended as a killed process does.
func survivors(t *testing.T, n, least int, body func(ctx context.Context, w *libmalt.World) error) {
	t.Helper()
	survivorsOn(t, inmem.New(n), least, func(tr rdma.Transport) rdma.Transport { return tr }, body)
}

// survivorsOn does so on transports made of these, of package inmem.
func survivorsOn(t *testing.T, ts []rdma.Transport, least int, on func(rdma.Transport) rdma.Transport, body func(ctx context.Context, w *libmalt.World) error) {
	t.Helper()
	ctx := background(t)
	var all sync.WaitGroup
	for r, tr := range ts {
		all.Go(func() {
			w, err := libmalt.NewWorld(ctx, on(tr), libmalt.Config{Continue: true, MinRanks: least})
			if err == nil {
				err = body(ctx, w)
			}
			if err == errKilled {
				inmem.Kill(tr)
				return
			}
			if err == nil {
				err = w.Close()
			}
			if err != nil {
				t.Errorf("rank %d: %v", r, err)
			}
		})
	}
	all.Wait()
}

// TestG8SurvivorsAgree kills up to all but one of the ranks between a scatter and the
// gather, or before it: in lock-step each who lives has, after each step, the mean of those
// that had arrived in it.
func TestG8SurvivorsAgree(t *testing.T) {
	const steps = 12
	for seed := range uint64(60) {
		rnd := rand.New(rand.NewPCG(seed, 8))
		n := []int{2, 3, 5, 8}[seed%4]
		dies, arrives := make([]uint64, n), make([]bool, n) // at which clock; and whether it has scattered there
		for _, r := range rnd.Perm(n)[:rnd.IntN(n)] {
			dies[r], arrives[r] = 1+rnd.Uint64N(steps), rnd.IntN(2) == 0
		}
		survivors(t, n, 1, func(ctx context.Context, w *libmalt.World) error {
			r := w.Rank()
			v, err := vector(ctx, w, 100, "")
			if err != nil {
				return err
			}
			for clock := uint64(1); clock <= steps; clock++ {
				if dies[r] == clock && !arrives[r] {
					return errKilled
				}
				fill(v.Bytes(), float32(clock*100)+float32(r))
				if _, err := v.Scatter(ctx, nil, 1); err != nil {
					return err
				}
				if dies[r] == clock {
					return errKilled
				}
				if _, err := v.Gather(ctx, ""); err != nil {
					return fmt.Errorf("clock %d: %w", clock, err)
				}
				sum, count := float32(0), float32(0)
				for o := range n {
					if dies[o] == 0 || dies[o] > clock || dies[o] == clock && arrives[o] {
						sum, count = sum+float32(clock*100)+float32(o), count+1
					}
				}
				if x, err := constant(v.Bytes()); err != nil || x != sum/count && x != sum*(1/count) {
					return fmt.Errorf("seed %d: at clock %d: %v (%v), want the mean of %v", seed, clock, x, err, count)
				}
			}
			return nil
		})
	}
}

// TestSurvivorsGoOn: in every mode and on any graph those who live make all their steps, and
// what the dead rank sent last is folded.
func TestSurvivorsGoOn(t *testing.T) {
	for _, n := range []int{2, 3, 5, 8} {
		for _, graph := range []string{"all", "halton", "ring", "random:1", "star", "one-peer"} {
			for _, consistency := range []string{"bsp", "ssp:0", "ssp:2", "async", "notify-ack", "notify-ack:3"} {
				if graph == "one-peer" && consistency != "bsp" {
					continue
				}
				options := "graph=" + graph + " consistency=" + consistency
				t.Run(fmt.Sprintf("%d ranks %s", n, options), func(t *testing.T) {
					survivors(t, n, 1, func(ctx context.Context, w *libmalt.World) error {
						v, err := vector(ctx, w, 10, options)
						if err != nil {
							return err
						}
						for step := range 12 {
							if step > 2 && w.Rank() == 1 || step > 6 && w.Rank() == 0 && n > 2 {
								return errKilled
							}
							fill(v.Bytes(), 1)
							if _, err := v.Sync(ctx, 1); err != nil {
								return fmt.Errorf("step %d: %w", step, err)
							}
							if x, err := constant(v.Bytes()); err != nil || x != 1 {
								return fmt.Errorf("step %d: the mean of ones is %v (%v)", step, x, err)
							}
						}
						return nil
					})
				})
			}
		}
	}
}

// TestCallsAmongSurvivors: collective calls are those of the ranks that live.
func TestCallsAmongSurvivors(t *testing.T) {
	died := make(chan struct{})
	survivors(t, 4, 2, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "")
		if err != nil {
			return err
		}
		r := w.Rank()
		if r == 0 {
			defer close(died)
			return errKilled // closed before the kill: the others have to wait for it
		}
		<-died
		if err := w.Barrier(ctx); err != nil {
			return err
		}
		if alive := w.Alive(); !slices.Equal(alive, []int{1, 2, 3}) || w.Generation() != 2 {
			return fmt.Errorf("alive %v in generation %d", alive, w.Generation())
		}
		data := make([]byte, 4<<20)
		binary.LittleEndian.PutUint64(data, uint64(r))
		parts, err := w.AllGather(ctx, data)
		if err != nil {
			return err
		}
		for o, part := range parts {
			if o == 0 && part != nil || o > 0 && (len(part) != len(data) || binary.LittleEndian.Uint64(part) != uint64(o)) {
				return fmt.Errorf("allgather gives %d bytes of rank %d", len(part), o)
			}
		}
		fill(v.Bytes(), float32(r))
		if err := v.AllReduce(ctx, "sum"); err != nil {
			return err
		}
		if x, err := constant(v.Bytes()); err != nil || x != 6 {
			return fmt.Errorf("the sum is %v (%v)", x, err)
		}
		if err := wantDeath(v.Broadcast(ctx, 0), 0); err != nil {
			return err
		}
		if _, err := w.Broadcast(ctx, []byte{1}, 0); wantDeath(err, 0) != nil {
			return wantDeath(err, 0)
		}
		fill(v.Bytes(), float32(r))
		if err := v.Broadcast(ctx, 3); err != nil {
			return err
		}
		if x, err := constant(v.Bytes()); err != nil || x != 3 {
			return fmt.Errorf("the root's value is %v (%v)", x, err)
		}
		// An object made now starts with the values of the lowest rank that lives.
		u, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: 4}}, "u", "graph=halton")
		if err != nil {
			return err
		}
		if got := u.Receivers(); slices.Contains(got, 0) || len(got) == 0 {
			return fmt.Errorf("receivers %v", got)
		}
		if _, err := u.Sync(ctx, 1); err != nil {
			return err
		}
		return v.Configure(ctx, "graph=ring consistency=ssp:1")
	})
}

// TestNewEdgesCarry: where a rank on a ring dies, its neighbours send to each other.
func TestNewEdgesCarry(t *testing.T) {
	for _, consistency := range []string{"bsp", "ssp:1", "async"} {
		for _, sparse := range []string{"", " sparse=model"} {
			t.Run(consistency+sparse, func(t *testing.T) {
				survivors(t, 4, 1, func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, 10, "graph=ring fold=replace consistency="+consistency+sparse)
					if err != nil {
						return err
					}
					r := w.Rank()
					if r == 2 {
						return errKilled
					}
					for w.Generation() == 1 {
						if err := w.Barrier(ctx); err != nil {
							return err
						}
					}
					before := map[int]int{0: 3, 1: 0, 3: 1}[r]
					if got := v.Senders(); !slices.Equal(got, []int{before}) {
						return fmt.Errorf("senders %v, want %d", got, before)
					}
					fill(v.Bytes(), float32(r+1))
					if _, err := v.Scatter(ctx, nil, 1); err != nil {
						return err
					}
					if err := w.Barrier(ctx); err != nil {
						return err
					}
					if _, err := v.Gather(ctx, ""); err != nil {
						return err
					}
					if x, err := constant(v.Bytes()); err != nil || x != float32(before+1) {
						return fmt.Errorf("rank %d has %v (%v), want that of rank %d", r, x, err, before)
					}
					return nil
				})
			})
		}
	}
}

// TestNewEdgesOfQueues is TestNewEdgesCarry where both ends have to begin: rank 3 has begun
// before rank 1, which needs what ranks 0 and 3 sent before, comes to its third update.
func TestNewEdgesOfQueues(t *testing.T) {
	for _, consistency := range []string{"notify-ack", "notify-ack:2"} {
		for _, sparse := range []string{"", " sparse=model"} {
			t.Run(consistency+sparse, func(t *testing.T) {
				survivors(t, 4, 1, func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, 10, "graph=ring fold=replace consistency="+consistency+sparse)
					if err != nil {
						return err
					}
					r := w.Rank()
					step := 0
					sync := func(times int) (err error) {
						for range times {
							step++
							fill(v.Bytes(), float32(10*step+r))
							if _, err = v.Sync(ctx, 1); err != nil {
								break
							}
						}
						return err
					}
					if err := sync(5); err != nil {
						return err
					}
					if r == 2 {
						return errKilled
					}
					if err := sync(7); err != nil {
						return err
					}
					before := map[int]int{0: 3, 1: 0, 3: 1}[r]
					if x, err := constant(v.Bytes()); err != nil || x != float32(10*step+before) {
						return fmt.Errorf("rank %d has %v (%v), want that of rank %d", r, x, err, before)
					}
					return nil
				})
			})
		}
	}
}

// TestTooFewSurvivors: with fewer ranks than asked for, and where a rank ends by an error
// of its own, the job ends as without on_death=continue.
func TestTooFewSurvivors(t *testing.T) {
	survivors(t, 3, 3, func(ctx context.Context, w *libmalt.World) error {
		if w.Rank() == 1 {
			return errKilled
		}
		return wantDeath(w.Barrier(ctx), 1)
	})
	survivors(t, 3, 1, func(ctx context.Context, w *libmalt.World) error {
		if w.Rank() == 1 {
			w.Abort(rdma.HasFailed(1, "an error of its own"))
			return nil
		}
		return wantDeath(w.Barrier(ctx), 1)
	})
}

// TestG2EdgesOfQueues kills ranks one after the other while the others go on in notify-ack:
// on each edge between two that live, old or new, each update is folded once, at the clock
// at which it was sent, with what it held; in the end on all edges of the repaired graph.
func TestG2EdgesOfQueues(t *testing.T) {
	const steps, rows = 90, 6
	for seed := range uint64(48) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		n := 2 + int(seed)%7
		graph := []string{"ring", "halton", "random:1", "lists", "chord"}[seed%5]
		if graph == "lists" {
			graph = around(n)
		}
		options := fmt.Sprintf("graph=%s consistency=notify-ack:%d", graph, 1+seed%3)
		if seed%4 == 3 {
			options += " sparse=model"
		}
		dies := make([]int, n) // before which step; 0: not
		for _, r := range rnd.Perm(n)[:rnd.IntN(n)] {
			dies[r] = 1 + rnd.IntN(steps/3)
		}
		before := rnd.IntN(2) == 0 // it has not sent in that step
		edges := make([][]libmalt.Edge, n)
		t.Run(fmt.Sprintf("%d ranks %s seed %d", n, options, seed), func(t *testing.T) {
			survivors(t, n, 1, func(ctx context.Context, w *libmalt.World) error {
				r := w.Rank()
				v, err := vector(ctx, w, rows, options)
				if err != nil {
					return err
				}
				last, has, want := make([]uint64, n), make([][]byte, n), make([]byte, 4*rows)
				for o := range has {
					has[o] = make([]byte, 4*rows)
				}
				for step := 1; step <= steps; step++ {
					if dies[r] == step && before {
						return errKilled
					}
					for row := range rows {
						putRow(v.Bytes(), row, r, step)
					}
					if _, err := v.Scatter(ctx, nil, 1); err != nil {
						return err
					}
					if dies[r] == step {
						return errKilled
					}
					var from []int
					updates, err := v.Begin(ctx)
					if err != nil {
						return err
					}
					for _, u := range updates {
						if u.Clock != uint64(step) || last[u.Rank] >= u.Clock {
							return fmt.Errorf("step %d: rank %d sent clock %d after clock %d", step, u.Rank, u.Clock, last[u.Rank])
						}
						last[u.Rank] = u.Clock
						learn(has[u.Rank], u)
						for row := range rows {
							putRow(want, row, u.Rank, step)
						}
						if !bytes.Equal(has[u.Rank], want) {
							return fmt.Errorf("step %d: of rank %d this one has %v, want %v", step, u.Rank, has[u.Rank], want)
						}
						from = append(from, u.Rank)
					}
					if err := v.End(true); err != nil {
						return err
					}
					senders := slices.Sorted(slices.Values(v.Senders()))
					if step == steps && !slices.Equal(from, senders) {
						return fmt.Errorf("at the end rank %d folds what ranks %v sent, and its senders are %v", r, from, senders)
					}
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				s, err := v.Stats()
				edges[r] = s.Edges
				return err
			})
			for from, sent := range edges {
				for to, got := range edges {
					if sent != nil && got != nil && sent[to].SentMessages != got[from].FoldedMessages {
						t.Errorf("rank %d has sent %d updates to rank %d, which has folded %d", from, sent[to].SentMessages, to, got[from].FoldedMessages)
					}
				}
			}
		})
	}
}

// putRow gives row what rank sends in it at that step: a row changes at every sixth.
func putRow(b []byte, row, rank, step int) {
	changed := 0
	if step > row {
		changed = 100*(step-(step-1-row)%6) + rank
	}
	binary.LittleEndian.PutUint32(b[4*row:], math.Float32bits(float32(changed)))
}

// learn adds the rows of u to what is known of its sender.
func learn(b []byte, u libmalt.Update) {
	if u.Rows == nil {
		copy(b, u.Data)
	}
	for i, row := range u.Rows {
		copy(b[4*row:4*row+4], u.Data[4*i:])
	}
}

// around is a graph of lists: a ring, with a second receiver for every other rank.
func around(n int) string {
	var lists []string
	for r := range n {
		list := fmt.Sprint((r + 1) % n)
		if r%2 == 0 && n > 3 {
			list += fmt.Sprint(",", (r+n-2)%n)
		}
		lists = append(lists, list)
	}
	return "lists:" + strings.Join(lists, "/")
}

// TestG8WhatOneSentAlone: while ranks 0 and 1 are in a barrier, rank 2 goes on alone, and its last update
// is for rank 0 only. Then it dies. What it sent beyond the others' clock counts for none of them.
func TestG8WhatOneSentAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		survivors(t, 3, 1, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 100, "start=own")
			if err != nil {
				return err
			}
			step := func(to []int) (int, error) {
				if _, err := v.Scatter(ctx, to, 1); err != nil {
					return 0, err
				}
				return v.Gather(ctx, "")
			}
			if w.Rank() == 2 {
				synctest.Wait() // the others are in the barrier
				for _, to := range [][]int{nil, nil, nil, {0}} {
					if _, err := step(to); err != nil {
						return err
					}
				}
				return errKilled
			}
			err = w.Barrier(ctx)
			for clock := 1; clock <= 5 && err == nil; clock++ {
				var n int
				if n, err = step(nil); err == nil && n != 1 {
					err = fmt.Errorf("at clock %d it has folded %d updates, expected that of the other rank", clock, n)
				}
			}
			return err
		})
	})
}

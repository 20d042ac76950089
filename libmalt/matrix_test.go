package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"malt/graphs"
	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// modes are all kinds of consistency.
var modes = []string{"bsp", "async", "ssp:0", "ssp:2", "notify-ack:1", "notify-ack:3"}

// shapes are graphs for n ranks in which some ranks have no receivers or no
// senders, few or many, or different ones at each clock.
func shapes(n int) []string {
	all := []string{"star", "one-peer"}
	if n > 2 {
		all = append(all, "random:2")
	}
	// A chain: the last rank has no receivers, the first no senders.
	chain := make([]string, n)
	for r := range n - 1 {
		chain[r] = fmt.Sprint(r + 1)
	}
	// All send to rank 0, which sends to nobody.
	sink := slices.Repeat([]string{"0"}, n)
	sink[0] = ""
	for _, lists := range [][]string{chain, sink, make([]string, n)} {
		all = append(all, "lists:"+strings.Join(lists, "/")+" allow_disconnected=true")
	}
	return all
}

// transports that are tested over. With -short, under the race detector, those
// that lie on the heap: it does not see shared memory, and tcp has tests of its own.
func transports() map[string]func(t testing.TB, n int) []rdma.Transport {
	all := map[string]func(t testing.TB, n int) []rdma.Transport{
		"inmem": func(_ testing.TB, n int) []rdma.Transport { return inmem.New(n) },
	}
	if !testing.Short() {
		all["shm"], all["tcp"] = shared, networked
	}
	return all
}

// TestShapes runs every mode over odd graphs, ranks ending at different times
// and meeting in collective calls in between: nobody hangs, and all that is
// folded is what the observer allows.
func TestShapes(t *testing.T) {
	for transport, open := range transports() {
		for i, mode := range modes {
			t.Run(transport+"/"+mode, func(t *testing.T) {
				sizes := sizes
				if transport == "shm" { // as many as there are cores, or few more, in one process
					sizes = []int{3, 5}
				}
				for _, n := range sizes {
					for seed, shape := range shapes(n) {
						if (n+seed+i)%2 > 0 { // each shape at each size, under half of the modes
							continue
						}
						for r, err := range run(background(t), open(t, n), func(ctx context.Context, w *libmalt.World) error {
							return randomProgram(ctx, w, mode, shape, uint64(seed+n))
						}) {
							if err != nil {
								t.Errorf("graph=%s, n %d, rank %d: %v", shape, n, r, err)
							}
						}
					}
				}
			})
		}
	}
}

// TestSubsetsInQueues: notify-ack:3 with other receivers at each scatter, in
// bursts, and ranks that make different numbers of steps. What a receiver gets
// is exactly what was meant for it, in order.
func TestSubsetsInQueues(t *testing.T) {
	const depth = 3
	meant := func(from, to int, clock uint64) bool { return (uint64(from+2*to)+clock)%3 != 0 }
	eachSize(t, func(t *testing.T, n int) {
		for _, graph := range []string{"all", "ring", "halton"} {
			g, err := graphs.Parse(graph, n)
			if err != nil {
				t.Fatal(err)
			}
			job(t, n, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 100, fmt.Sprintf("graph=%s consistency=notify-ack:%d", graph, depth))
				if err != nil {
					return err
				}
				// Each rank makes a multiple of depth steps; those of rank r are the
				// rounds 1 … rounds(r).
				rounds := func(r int) uint64 { return depth * (2 + uint64(r*5%7)) }
				next := make([]uint64, n) // the clock of each sender's update to come
				for clock := uint64(1); clock <= rounds(w.Rank()); {
					for range depth {
						fill(v.Bytes(), value(w.Rank(), clock))
						to := []int{}
						for _, r := range v.Receivers() {
							if meant(w.Rank(), r, clock) {
								to = append(to, r)
							}
						}
						if sent, err := v.Scatter(ctx, to, 1); err != nil || sent != 400*len(to) {
							return fmt.Errorf("sent %d bytes to %v: %w", sent, to, err)
						}
						clock++
					}
					for range depth {
						us, err := v.Begin(ctx)
						if err != nil {
							return err
						}
						var got []int
						for _, u := range us {
							got = append(got, u.Rank)
							if x, err := constant(u.Data); err != nil || x != value(u.Rank, next[u.Rank]+1) || u.Clock != next[u.Rank]+1 {
								return fmt.Errorf("from rank %d: clock %d of value %v, want clock %d (%v)", u.Rank, u.Clock, x, next[u.Rank]+1, err)
							}
						}
						var want []int
						for _, s := range slices.Sorted(slices.Values(g.Senders(w.Rank(), 1))) {
							if next[s]++; next[s] <= rounds(s) && meant(s, w.Rank(), next[s]) {
								want = append(want, s)
							}
						}
						if !slices.Equal(got, want) {
							return fmt.Errorf("updates of ranks %v, want %v", got, want)
						}
						if err := v.End(true); err != nil {
							return err
						}
					}
				}
				return nil
			})
		}
	})
}

// TestOnePeerFoldsOnePeer: at each clock in lock-step exactly the sender of that
// clock.
func TestOnePeerFoldsOnePeer(t *testing.T) {
	eachSize(t, func(t *testing.T, n int) {
		g, err := graphs.Parse("one-peer", n)
		if err != nil {
			t.Fatal(err)
		}
		job(t, n, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 10, "graph=one-peer")
			if err != nil {
				return err
			}
			for clock := uint64(1); clock <= 20; clock++ {
				if _, err := v.Scatter(ctx, nil, 1); err != nil {
					return err
				}
				us, err := v.Begin(ctx)
				if err != nil {
					return err
				}
				var got []int
				for _, u := range us {
					got = append(got, u.Rank)
				}
				if want := g.Senders(w.Rank(), clock); !slices.Equal(got, want) {
					return fmt.Errorf("clock %d: folds %v, want %v", clock, got, want)
				}
				if err := v.End(true); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// TestConfigureWithHeldUpdates: updates that End(false) has kept are dropped by a
// change of mode, from every mode to every other.
func TestConfigureWithHeldUpdates(t *testing.T) {
	for _, from := range modes {
		for _, to := range modes {
			job(t, 3, func(ctx context.Context, w *libmalt.World) error {
				v, err := vector(ctx, w, 100, "start=own consistency="+from)
				if err != nil {
					return err
				}
				fill(v.Bytes(), -1)
				if _, err := v.Scatter(ctx, nil, 1); err != nil {
					return err
				}
				if _, err := v.Begin(ctx); err != nil {
					return err
				}
				if err := errors.Join(wantErr(v.Configure(ctx, "consistency="+to), libmalt.ErrBusy), v.End(false)); err != nil {
					return err
				}
				if err := v.Configure(ctx, "consistency="+to); err != nil {
					return err
				}
				if to == "async" { // a gather that waits for nobody needs no scatter, whatever was before
					if _, err := v.Gather(ctx, "max"); err != nil {
						return fmt.Errorf("%s to %s: %w", from, to, err)
					}
				}
				for step := range 3 {
					fill(v.Bytes(), float32(step))
					if _, err := v.Scatter(ctx, nil, 1); err != nil {
						return err
					}
					us, err := v.Begin(ctx)
					if err != nil {
						return err
					}
					for _, u := range us {
						if x, err := constant(u.Data); x < 0 || err != nil {
							return fmt.Errorf("%s to %s: rank %d's update of value %v is back (%v)", from, to, u.Rank, x, err)
						}
					}
					if err := v.End(true); err != nil {
						return err
					}
				}
				return nil
			})
		}
	}
}

// TestManyVectors: 200 are open at once, made, used, levelled and closed.
func TestManyVectors(t *testing.T) {
	for transport, open := range transports() {
		t.Run(transport, func(t *testing.T) {
			check(t, run(background(t), open(t, 3), func(ctx context.Context, w *libmalt.World) error {
				var all []*libmalt.Vector
				for i := range 200 {
					v, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: i}}, "", "consistency="+modes[i%len(modes)])
					if err != nil {
						return fmt.Errorf("vector %d: %w", i, err)
					}
					all = append(all, v)
				}
				for i, v := range all {
					for range 1 + i%3 {
						fill(v.Bytes(), float32(i))
						if _, err := v.Sync(ctx, 1); err != nil {
							return err
						}
					}
					if i%50 == 0 {
						if err := w.Barrier(ctx); err != nil {
							return err
						}
					}
				}
				if err := w.Barrier(ctx); err != nil {
					return err
				}
				for i, v := range all {
					if got, want := v.Clock(), uint64(1+i%3); got != want {
						return fmt.Errorf("vector %d is at clock %d after a barrier, want %d", i, got, want)
					}
					if i > 0 && at(v.Bytes(), i-1) != float32(i) {
						return fmt.Errorf("vector %d has value %v", i, at(v.Bytes(), i-1))
					}
					if i%2 == 0 {
						if err := v.Close(); err != nil {
							return err
						}
					}
				}
				return w.Barrier(ctx)
			}))
		})
	}
}

// TestTwoWorlds in one process do not know of each other.
func TestTwoWorlds(t *testing.T) {
	for transport, open := range transports() {
		t.Run(transport, func(t *testing.T) {
			first, second := open(t, 2), open(t, 3)
			program := func(x float32) func(ctx context.Context, w *libmalt.World) error {
				return func(ctx context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, 1000, "")
					if err != nil {
						return err
					}
					for range 30 {
						fill(v.Bytes(), x)
						if k, err := v.Sync(ctx, 1); err != nil || k != w.Size()-1 || at(v.Bytes(), 999) != x {
							return fmt.Errorf("folded %d to %v: %w", k, at(v.Bytes(), 999), err)
						}
						if err := w.Barrier(ctx); err != nil {
							return err
						}
					}
					return nil
				}
			}
			other := make(chan []error)
			go func() { other <- run(background(t), second, program(7)) }()
			check(t, run(background(t), first, program(5)))
			check(t, <-other)
		})
	}
}

package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"malt/libmalt"
	"malt/libmalt/rule"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// observer holds a rank's received updates against the guarantees. Every sender
// writes its rank and clock into all elements.
type observer struct {
	mode rule.Rule
	last map[int]uint64 // clock of the last update folded, by sender
	gaps bool           // some updates were not meant for this rank, or a collective skipped some
}

// value is what rank writes for its scatter of that clock.
func value(rank int, clock uint64) float32 { return float32(rank)*100_000 + float32(clock) }

func (o *observer) check(own uint64, us []libmalt.Update) error {
	for _, u := range us {
		x, err := constant(u.Data) // G3: never torn
		if err != nil {
			return fmt.Errorf("G3: from rank %d at clock %d: %w", u.Rank, u.Clock, err)
		}
		if x != value(u.Rank, u.Clock) {
			return fmt.Errorf("G3: from rank %d at clock %d: value %v, want %v", u.Rank, u.Clock, x, value(u.Rank, u.Clock))
		}
		last := o.last[u.Rank]
		if u.Clock <= last { // G2: at most once
			return fmt.Errorf("G2: from rank %d: clock %d after %d", u.Rank, u.Clock, last)
		}
		switch o.mode.Kind {
		case rule.NotifyAck: // G2: exactly once
			if u.Clock != last+1 && !o.gaps {
				return fmt.Errorf("G2: from rank %d: clock %d after %d in a queue", u.Rank, u.Clock, last)
			}
		case rule.SSP: // G7
			if u.Clock+o.mode.N < own {
				return fmt.Errorf("G7: from rank %d: clock %d folded at %d with slack %d", u.Rank, u.Clock, own, o.mode.N)
			}
		case rule.BSP:
			if u.Clock != own {
				return fmt.Errorf("bsp: from rank %d: clock %d folded at %d", u.Rank, u.Clock, own)
			}
		}
		if u.Age != int64(own)-int64(u.Clock) {
			return fmt.Errorf("age %d of clock %d at %d", u.Age, u.Clock, own)
		}
		o.last[u.Rank] = u.Clock
	}
	return nil
}

// TestRandomSchedules runs random programs of scatters, gathers, subsets,
// collective calls and early ends, at random speeds, under every mode.
func TestRandomSchedules(t *testing.T) {
	seeds := uint64(12)
	if testing.Short() {
		seeds = 3
	}
	for _, mode := range []string{"async", "ssp:0", "ssp:3", "bsp", "notify-ack:1", "notify-ack:3"} {
		for _, graph := range []string{"all", "halton", "ring", "one-peer"} {
			t.Run(mode+"/"+graph, func(t *testing.T) {
				for seed := range seeds {
					n := sizes[1+seed%5]
					for r, err := range run(background(t), inmem.New(n), func(ctx context.Context, w *libmalt.World) error {
						return randomProgram(ctx, w, mode, graph, seed)
					}) {
						if err != nil {
							t.Errorf("seed %d, n %d, rank %d: %v", seed, n, r, err)
						}
					}
				}
			})
		}
	}
}

func randomProgram(ctx context.Context, w *libmalt.World, mode, graph string, seed uint64) error {
	shared := rand.New(rand.NewPCG(seed, 1))               // the same on all ranks
	own := rand.New(rand.NewPCG(seed, 2+uint64(w.Rank()))) // this rank's
	length := []int{1, 16, 1000, 20_000}[shared.IntN(4)]   // elements
	subsets, m := shared.IntN(2) == 0, rule.Rule{}
	m, err := rule.Parse(mode)
	if err != nil {
		return err
	}
	v, err := vector(ctx, w, length, "consistency="+mode+" graph="+graph)
	if err != nil {
		return err
	}
	o := &observer{mode: m, last: map[int]uint64{}, gaps: subsets || graph == "one-peer"}
	rounds := 1 + shared.IntN(3)
	for round := range rounds {
		for range 5 + own.IntN(40) {
			for range own.IntN(3) * own.IntN(50) {
				runtime.Gosched()
			}
			if err := o.step(ctx, v, own, subsets); err != nil {
				return err
			}
		}
		if round == rounds-1 && own.IntN(2) == 0 {
			return nil // ends while the others may go on
		}
		if round < rounds-1 {
			if err := w.Barrier(ctx); err != nil {
				return err
			}
			o.gaps = true
		}
	}
	return nil
}

// step scatters to all or some receivers, then gathers.
func (o *observer) step(ctx context.Context, v *libmalt.Vector, rnd *rand.Rand, subsets bool) error {
	clock := v.Clock() + 1
	fill(v.Bytes(), value(v.World().Rank(), clock))
	var to []int
	if subsets && rnd.IntN(2) == 0 {
		to = []int{}
		for _, r := range v.Receivers() {
			if rnd.IntN(2) == 0 {
				to = append(to, r)
			}
		}
	}
	if _, err := v.Scatter(ctx, to, 1); err != nil {
		return err
	}
	if o.mode.Boxes() == rdma.Newest && rnd.IntN(3) == 0 {
		return nil // scatter again before the gather
	}
	us, err := v.Begin(ctx)
	if err != nil {
		return err
	}
	return errors.Join(o.check(v.Clock(), us), v.End(true))
}

// TestQueuesAfterFailedCollectives: barriers run into their timeouts and are
// given up, or find that another rank has, or has ended, between gathers in
// notify-ack. Whatever is folded then is whole, in order, and what the sender
// meant (the observer tells).
func TestQueuesAfterFailedCollectives(t *testing.T) {
	for _, mode := range []string{"notify-ack:1", "notify-ack:3"} {
		for transport, open := range transports() {
			t.Run(mode+"/"+transport, func(t *testing.T) {
				for seed := range uint64(5) {
					check(t, run(background(t), open(t, 3), func(ctx context.Context, w *libmalt.World) error {
						rnd := rand.New(rand.NewPCG(seed, uint64(w.Rank())))
						v, err := vector(ctx, w, 5000, "consistency="+mode)
						if err != nil {
							return err
						}
						m, err := rule.Parse(mode)
						o := &observer{mode: m, last: map[int]uint64{}, gaps: true}
						for range 60 + rnd.IntN(60) {
							if err != nil {
								return err
							}
							if rnd.IntN(3) > 0 {
								err = o.step(ctx, v, rnd, false)
								continue
							}
							short, stop := context.WithTimeout(ctx, time.Duration(rnd.IntN(1000))*time.Microsecond)
							err = w.Barrier(short)
							stop()
							if errors.Is(err, libmalt.ErrTimeout) || errors.Is(err, libmalt.ErrLeft) {
								err = nil
							}
						}
						if err != nil {
							return err
						}
						return o.step(ctx, v, rnd, false) // after a timeout alone it would end as dead
					}))
				}
			})
		}
	}
}

// TestQueuesGoOnWithoutARank that has ended: a collective call is no longer
// possible, but gathers are.
func TestQueuesGoOnWithoutARank(t *testing.T) {
	job(t, 3, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "consistency=notify-ack start=own")
		if err != nil || w.Rank() == 2 {
			return err
		}
		for range 3 {
			if err := wantErr(w.Barrier(ctx), libmalt.ErrLeft); err != nil {
				return err
			}
			for range 3 {
				if _, err := v.Sync(ctx, 1); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

//go:build explore

package libmalt

import (
	"bytes"
	"context"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"malt/internal/explore"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/route/shared"
	"malt/rdma"
	"malt/rdma/explored"
)

// The route in place by itself, without boxes and collective calls, so that three ranks of
// which two die are few enough states.

// bare is a vector that has its route alone.
type bare struct {
	core.Boxed // what the route does not ask for
	rank, size int
	tr         *explored.Transport
	data       []byte
}

func (b *bare) Rank() int                               { return b.rank }
func (b *bare) Size() int                               { return b.size }
func (b *bare) View() rdma.View                         { return b.tr.View() }
func (b *bare) Brought(int, []int)                      {}
func (b *bare) Runs() []reduce.Run                      { return []reduce.Run{{Type: reduce.Float64, Bytes: len(b.data)}} }
func (b *bare) Clock() uint64                           { return 0 }
func (b *bare) Adopt()                                  {}
func (b *bare) CatchUp()                                {}
func (b *bare) Folded(time.Duration)                    {}
func (b *bare) Heard(int) (uint64, error)               { return 0, nil }
func (b *bare) Awaited(int) bool                        { return false }
func (b *bare) Missing(rank int, _ error) (bool, error) { return !b.Lost(rank), nil }
func (b *bare) Survives() bool                          { return true }
func (b *bare) Lost(rank int) bool                      { return !b.tr.View().Has(rank) }

// mends is a case: so many ranks sync once, in place.
type mends struct {
	ranks, blocks int
	op            reduce.Op
	small         bool // the rank that decides folds for all
}

func (m mends) setup(x *explore.Exec) {
	job := explored.New(x, m.ranks, false)
	job.Survive()
	array := m.blocks * core.BlockBytes
	room, words, claims := shared.Layout(array)
	all, threads := make([]*bare, m.ranks), make([]*explore.Thread, m.ranks)
	for r, memory := range job.Shared("shared", room, words, claims) {
		b := &bare{rank: r, size: m.ranks, data: memory.Bytes(r)[:array:array]}
		for i := 0; i < array; i += 8 {
			binary.LittleEndian.PutUint64(b.data[i:], math.Float64bits(valueOf(r, 1)))
		}
		route := shared.On(b, memory, array, m.small)
		all[r] = b
		threads[r] = job.Go(r, func(t *explore.Thread, tr *explored.Transport) {
			b.tr = tr
			tr.Local = route.State
			route.Begin(1, m.op, 1)
			var at core.Outcome
			err := tr.Wait(context.Background(), func() bool {
				at, _ = route.Step()
				return at != core.Underway
			})
			if err != nil || at != core.Arrived {
				t.Fail("the sync of rank %d ends as %d: %v", r, at, err)
			}
			m.judge(t, b, route.Ranks(), threads)
		})
	}
	job.Kernel()
	x.Final(func(report func(string, ...any)) {
		var first *bare
		for r, b := range all {
			switch {
			case threads[r].Dead():
			case first == nil:
				first = b
			case !bytes.Equal(b.data, first.data):
				report("rank %d holds %x, rank %d %x", first.rank, first.data, r, b.data)
			}
		}
	})
}

// judge holds what a rank has against the fold of the ranks that have taken part, all who
// live among them.
func (m mends) judge(t *explore.Thread, b *bare, ranks []int, threads []*explore.Thread) {
	sum, in := 0.0, make([]bool, m.ranks)
	for _, r := range ranks {
		sum, in[r] = sum+valueOf(r, 1), true
	}
	for r, other := range threads {
		if !in[r] && !other.Dead() {
			t.Fail("rank %d lives, and is not among %v", r, ranks)
		}
	}
	if got, err := uniform(b.data); m.op == reduce.Sum && (err != nil || got != sum) {
		t.Fail("rank %d holds %v (%v), not the sum %v of %v", b.rank, got, err, sum, ranks)
	}
}

func TestExploreMend(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name        string
		large       bool
		kills       int
		preemptions int
		mends
	}{
		{"two ranks", false, 1, 2, mends{2, 3, reduce.Sum, false}},
		{"two ranks, small", false, 1, 2, mends{2, 2, reduce.Sum, true}},
		{"three ranks, small", true, 2, 1, mends{3, 2, reduce.Sum, true}},
		{"three ranks", true, 2, 1, mends{3, 3, reduce.Sum, false}},
		{"three ranks, mean", true, 2, 1, mends{3, 3, reduce.Mean, false}},
		{"three ranks, spans of two blocks", true, 2, 1, mends{3, 6, reduce.Sum, false}},
		{"four ranks", true, 3, 1, mends{4, 4, reduce.Sum, false}},
	} {
		explore.Case(t, c.name, c.large, func(t *testing.T) {
			explore.Must(t, explore.Check(explore.Options{Kills: c.kills, Preemptions: c.preemptions}, c.setup))
		})
	}
}

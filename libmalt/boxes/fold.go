package boxes

import (
	"cmp"
	"context"
	"slices"
	"time"

	"malt/libmalt/codec"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
)

// folding is the memory of folds.
type folding struct {
	srcs    [][]byte
	ranks   []int // of these
	weights []float64
	adder   reduce.Adder
}

// Gather folds what has come, as the rule says, and returns how many updates that was.
func (b *Boxes) Gather(ctx context.Context, op reduce.Op) (int, error) {
	if err := b.gatherRaw(ctx); err != nil {
		return 0, err
	}
	return b.foldAll(op)
}

// Sync is Send to all receivers, then Gather; or goes by the route.
// slack is that of this one, in place of the rule's; negative: as the rule says.
func (b *Boxes) Sync(ctx context.Context, rows []int64, weight float64, slack int, op reduce.Op) (int, error) {
	o := &b.syncing
	if err := b.Run(ctx, true, o, func() error { return o.start(b, rows, weight, slack, op) }); err != nil {
		return 0, err
	}
	if o.stage == onRoute {
		b.Free()
		return len(b.Job.View().Ranks) - 1, nil
	}
	b.held.Store(true)
	if err := b.decode(); err != nil {
		return 0, err
	}
	return b.foldAll(op)
}

// foldAll folds what Begin has found, and ends that.
func (b *Boxes) foldAll(op reduce.Op) (int, error) {
	n := len(b.updates)
	for _, u := range b.updates {
		if !b.counting.fresh(u.Seq, u.Read) {
			n-- // an earlier gather has counted it
		}
	}
	if b.owedAt > 0 {
		n = len(b.Job.View().Ranks) - 1 // the route has folded them
	}
	if len(b.updates) == 0 {
		b.fold(op, nil) // of changes: those that came before
	} else {
		start := time.Now()
		b.fold(op, b.updates)
		b.Counts.FoldTime += time.Since(start)
	}
	return n, b.End(true)
}

// fold combines the updates into the vector. Operands are added in the order of
// ranks, this rank's own in its place, so that ranks that fold the same set get
// the same bits. If all send to all from several hosts the order is that of
// reduce.Subtotal.
func (b *Boxes) fold(op reduce.Op, updates []codec.Update) {
	if len(b.Data) == 0 || b.Codec.Fold(op, b.weight, updates) || len(updates) == 0 {
		return
	}
	if op == reduce.Replace {
		// The newest overwrites; of equally new ones that of the lowest rank.
		newest := slices.MaxFunc(updates, func(x, y codec.Update) int { return cmp.Compare(x.Clock, y.Clock) })
		reduce.Copy(b.Data, newest.Data)
		return
	}
	if b.ch.everyone && b.Codec.Row() == 0 && b.Job.Hosts.Several() && op != reduce.MeanReceived {
		b.foldByHost(op, updates)
		return
	}
	f := &b.folding
	f.srcs, f.ranks, f.weights = f.srcs[:0], f.ranks[:0], f.weights[:0]
	own := op != reduce.MeanReceived
	add := func(rank int, data []byte, weight float64) {
		f.srcs, f.ranks, f.weights = append(f.srcs, data), append(f.ranks, rank), append(f.weights, weight)
	}
	for _, u := range updates {
		if own && u.Rank > b.Job.Rank {
			add(b.Job.Rank, b.Data, b.weight)
			own = false
		}
		add(u.Rank, u.Data, u.Weight)
	}
	if own {
		add(b.Job.Rank, b.Data, b.weight)
	}
	weights := f.weights
	if !slices.ContainsFunc(weights, func(w float64) bool { return w != 1 }) {
		weights = nil
	}
	b.Brought(reduce.FoldRuns(op, b.runs, 0, b.Data, f.srcs, weights, 0), f.ranks)
	clear(f.srcs)
}

// foldByHost is fold in the order of reduce.Subtotal.
func (b *Boxes) foldByHost(op reduce.Op, updates []codec.Update) {
	a := &b.folding.adder
	a.From = reduce.None
	for lo := 0; lo < len(b.Data); lo += core.BlockBytes {
		to := min(lo+core.BlockBytes, len(b.Data))
		a.Parts = a.Parts[:0]
		for _, ranks := range b.Job.Hosts.Ranks {
			a.Terms = a.Terms[:0]
			for _, r := range ranks {
				if r == b.Job.Rank {
					a.Terms = append(a.Terms, reduce.Subtotal{Data: b.Data[lo:to], Rank: r, Count: 1, Weight: b.weight})
				}
				for _, u := range updates {
					if u.Rank == r {
						a.Terms = append(a.Terms, reduce.Subtotal{Data: u.Data[lo:to], Rank: r, Count: 1, Weight: u.Weight})
					}
				}
			}
			switch len(a.Terms) {
			case 0:
			case 1:
				a.Parts = append(a.Parts, a.Terms[0])
			default:
				a.Parts = append(a.Parts, a.AddTerms(op, b.runs, lo, a.Room(len(a.Parts), to-lo)))
			}
		}
		a.FoldParts(op, b.runs, lo, b.Data[lo:to])
	}
	clear(a.Parts)
	clear(a.Terms)
	b.Brought(a.From, nil)
}

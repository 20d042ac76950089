package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"malt/libmalt"
	"malt/rdma/rdmatest/inmem"
)

// TestPaperBytesAllOverHalton counts at the transport: with 8 ranks in async an
// all-to-all exchange moves 7 updates for each 3 of halton (MALT section 3.4).
func TestPaperBytesAllOverHalton(t *testing.T) {
	const length, steps = 1000, 10
	sent := map[string]uint64{}
	for _, graph := range []string{"all", "halton"} {
		ts := inmem.New(8)
		for r, err := range run(background(t), ts, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, length, "consistency=async graph="+graph)
			if err != nil {
				return err
			}
			count := func() (n uint64) {
				for peer := range 8 {
					n += w.Traffic(peer).SentBytes
				}
				return n
			}
			before, returned := count(), 0
			for range steps {
				n, err := v.Scatter(ctx, nil, 1)
				if err != nil {
					return err
				}
				returned += n
			}
			got := count() - before
			if got != uint64(returned) {
				return fmt.Errorf("%s: Scatter returned %d bytes, the transport counted %d", graph, returned, got)
			}
			if w.Rank() == 0 {
				sent[graph] = got
			}
			return w.Barrier(ctx)
		}) {
			if err != nil {
				t.Errorf("%s rank %d: %v", graph, r, err)
			}
		}
	}
	if sent["all"] != 7*4*length*steps || sent["halton"] != 3*4*length*steps {
		t.Errorf("all sent %d, halton %d bytes; want 7 : 3 of %d", sent["all"], sent["halton"], 4*length*steps)
	}
}

// TestTrafficOfCollectiveCalls: what a collective call costs does not grow with the
// objects that there are, only with those that were used since the last one.
func TestTrafficOfCollectiveCalls(t *testing.T) {
	ts := inmem.New(2)
	for r, err := range run(background(t), ts, func(ctx context.Context, w *libmalt.World) error {
		const objects = 100
		cost := func(call func() error) (uint64, error) {
			before := w.Traffic(1 - w.Rank()).SentBytes
			err := call()
			return w.Traffic(1-w.Rank()).SentBytes - before, err
		}
		var last *libmalt.Vector
		making := make([]uint64, objects)
		for i := range making {
			var err error
			if making[i], err = cost(func() (err error) { last, err = vector(ctx, w, 10, "consistency=async"); return err }); err != nil {
				return err
			}
		}
		barrier := func() error { return w.Barrier(ctx) }
		idle, err := cost(barrier)
		if err == nil {
			_, err = last.Scatter(ctx, nil, 1)
		}
		if err != nil {
			return err
		}
		used, err := cost(barrier)
		again, failed := cost(barrier)
		if making[objects-1] > making[0]+8 || used-idle > 32 || again != idle { // names have more digits
			err = fmt.Errorf("making took %d bytes first and %d last, a barrier %d, %d after a scatter, then %d", making[0], making[objects-1], idle, used, again)
		}
		return errors.Join(err, failed)
	}) {
		if err != nil {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

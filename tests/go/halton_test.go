package tests

import (
	"context"
	"fmt"
	"math/bits"
	"sync"
	"testing"
	"time"

	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// MALT section 3.4: with halton a round of scatters of all N ranks is
// N·floor(log2 N) updates, for every N. The transport counts them.
func TestHaltonSendsNLogNUpdates(t *testing.T) {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	for n := 1; n <= 33; n++ {
		sent, received, err := round(ctx, n, "halton")
		if want := uint64(n * (bits.Len(uint(n)) - 1)); err != nil || sent != want || received != want {
			t.Errorf("N = %d: %d updates sent and %d received (%v); want %d", n, sent, received, err, want)
		}
	}
}

// round lets n ranks scatter once and gather, and sums up what the transport has
// counted meanwhile.
func round(ctx context.Context, n int, graph string) (sent, received uint64, err error) {
	var all sync.WaitGroup
	var mu sync.Mutex
	for rank, tr := range inmem.New(n) {
		all.Go(func() {
			s, r, e := roundOf(ctx, tr, graph)
			mu.Lock()
			defer mu.Unlock()
			sent, received = sent+s, received+r
			if e != nil {
				err = fmt.Errorf("rank %d: %w", rank, e)
			}
		})
	}
	all.Wait()
	return sent, received, err
}

// roundOf is one rank's part.
func roundOf(ctx context.Context, t rdma.Transport, graph string) (sent, received uint64, err error) {
	count := func(sign uint64) {
		for peer := range t.Size() {
			c := t.Traffic(peer)
			sent, received = sent+sign*c.SentMessages, received+sign*c.ReceivedMessages
		}
	}
	w, err := libmalt.NewWorld(ctx, t, libmalt.Config{})
	if err != nil {
		return 0, 0, err
	}
	v, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: 10}}, "w", "consistency=ssp:0 graph="+graph)
	if err != nil {
		return 0, 0, err
	}
	count(^uint64(0)) // what making it took does not count
	if _, err = v.Sync(ctx, 1); err != nil {
		return 0, 0, err
	}
	count(1)
	return sent, received, w.Close()
}

package libmalt

import (
	"context"
	"sync"
	"testing"

	"malt/rdma/inmem"
)

// TestMuchNews: more objects have changed than fit into the header of a call.
func TestMuchNews(t *testing.T) {
	const objects = 2*(chunkBytes-withHeader)/objectBytes + 100
	var ranks sync.WaitGroup
	for r, tr := range inmem.New(2) {
		ranks.Go(func() {
			w, err := NewWorld(context.Background(), tr, Config{})
			if err != nil {
				t.Error(err)
				return
			}
			all := make([]*Segment, objects)
			for i := range all {
				s := &Segment{w: w, id: uint32(i + 1), told: make([]standing, 2)}
				s.clock.Store(uint64(r * (i + 1)))
				w.enlist(s)
				s.changed()
				all[i] = s
			}
			if err := w.Barrier(context.Background()); err != nil {
				t.Error(err)
			}
			for i, s := range all {
				for from, at := range s.told {
					if at.clock != uint64(from*(i+1)) {
						t.Errorf("of object %d rank %d has heard that rank %d is at clock %d", i, r, from, at.clock)
					}
				}
			}
			w.objects = nil // they have no memory
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	ranks.Wait()
}

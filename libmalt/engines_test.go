package libmalt_test

import (
	"context"
	"fmt"
	"testing"

	"malt/libmalt"
	"malt/libmalt/routetest"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// TestEngines: each rank adds 1 to its own element, in a cache line of its own, before each sync.
func TestEngines(t *testing.T) {
	const line = 8 // elements
	for _, ranks := range []struct {
		name string
		make func(t *testing.T, n int) []rdma.Transport
	}{
		{"inmem", func(_ *testing.T, n int) []rdma.Transport { return inmem.New(n) }},
		{"shm", func(t *testing.T, n int) []rdma.Transport { return shared(t, n) }},
		{"tcp", func(t *testing.T, n int) []rdma.Transport { return overTCP(t, n) }},
	} {
		for _, graph := range []string{"butterfly", "shards", "shards:1", "shards:2/1"} {
			for _, slack := range []int{0, 2} {
				t.Run(fmt.Sprintf("%s, %s, ssp:%d", ranks.name, graph, slack), func(t *testing.T) {
					routetest.Engine{
						Ranks: ranks.make,
						Make: func(ctx context.Context, w *libmalt.World) (*libmalt.Vector, error) {
							v, _, err := numbers(ctx, w, line*w.Size(), 0, fmt.Sprintf("fold=sum-changes graph=%s consistency=ssp:%d", graph, slack))
							return v, err
						},
						Slack: slack,
						Change: func(v *libmalt.Vector, _ int) {
							r := line * v.World().Rank()
							setElement(v.Array(0), r, element(v.Array(0), r)+1)
						},
						Check: func(v *libmalt.Vector, clock int, _ bool) error {
							for r := range v.World().Size() {
								x, least := int(element(v.Array(0), line*r)), clock-slack
								if x < least || r == v.World().Rank() && x != clock {
									return fmt.Errorf("after sync %d there are %d changes of rank %d", clock, x, r)
								}
							}
							return nil
						},
					}.Run(t)
				})
			}
		}
	}
}

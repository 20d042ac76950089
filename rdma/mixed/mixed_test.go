package mixed

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/rdmatest"
	"malt/rdma/remote"
	"malt/rdma/rendezvous"
	"malt/rdma/shm"
	"malt/rdma/tcp"
)

// open makes a rank for each element of host, which says on which machine it is
// taken to be.
func open(t testing.TB, host ...int) []rdma.Transport {
	t.Helper()
	job := fleet.NewStore()
	peers := make([][]string, len(host))
	near := map[int][]int{}
	listeners := make([]net.Listener, len(host))
	for rank, h := range host {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[rank] = l
		peers[rank] = []string{l.Addr().String()}
		near[h] = append(near[h], rank)
	}
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	all := make([]rdma.Transport, len(host))
	errs := make([]error, len(host))
	var wg sync.WaitGroup
	for rank, h := range host {
		wg.Go(func() {
			all[rank], errs[rank] = Open(nil,
				func(elsewhere Elsewhere) (Near, error) {
					return shm.Open(ctx, rendezvous.Config{Rank: rank, Size: len(host), Store: job, Token: "secret", Members: near[h], Elsewhere: elsewhere.State})
				},
				func(n Near) (Far, error) {
					return remote.Open(ctx, remote.Config{Rank: rank, Size: len(host), Generation: 1, Near: near[h], Bell: n},
						tcp.New(tcp.Config{Job: job, Token: []byte("secret"), Listeners: listeners[rank : rank+1], Peers: peers}))
				})
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, tr := range all {
		// They share a process: who looks for long keeps others from running.
		tr.(*transport).near.(*shm.Transport).WaitAs(rendezvous.Policy{})
	}
	return all
}

// settled is a rank among others of this process that can wait until everything
// that was sent between them has landed.
type settled struct {
	rdma.Transport
	far []rdmatest.Framer
}

// Settle is what rdmatest asks for.
func (s settled) Settle() {
	if err := rdmatest.Settle(s.far, fleet.Patience); err != nil {
		panic(err)
	}
}

func settle(all []rdma.Transport) []rdma.Transport {
	far := make([]rdmatest.Framer, len(all))
	ts := make([]rdma.Transport, len(all))
	for i, t := range all {
		far[i] = t.(*transport).far.(rdmatest.Framer)
		ts[i] = settled{t, far}
	}
	return ts
}

// Whether ranks share a machine or not makes no difference to who uses them.
func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("shm and tcp have theirs")
	}
	for name, layout := range map[string]struct {
		most int // ranks
		host func(rank int) int
	}{
		"two each":  {5, func(rank int) int { return rank / 2 }},
		"one each":  {3, func(rank int) int { return rank }},
		"one alone": {3, func(rank int) int { return min(rank, 1) }},
		"three": {8, func(rank int) int {
			if rank < 3 {
				return 0
			}
			return 1 + rank%2
		}},
	} {
		t.Run(name, func(t *testing.T) {
			rdmatest.Run(t, func(t *testing.T, n int) []rdma.Transport {
				if n > layout.most {
					t.Skipf("%d ranks are for other layouts", n)
				}
				hosts := make([]int, n)
				for rank := range hosts {
					hosts[rank] = layout.host(rank)
				}
				return settle(open(t, hosts...))
			})
		})
	}
}

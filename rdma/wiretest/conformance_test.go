package wiretest

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/rdmatest"
	"malt/rdma/remote"
	"malt/rdma/vote"
)

// settled can wait until everything that was sent has landed.
type settled struct {
	*remote.Transport
	all []rdmatest.Framer
	net *Net
}

// Abort: a rank that aborts says so once, and whoever does not hear it waits for the end of
// its process.
func (s settled) Abort(why *rdma.PeerError) {
	s.net.Keep()
	s.Transport.Abort(why)
}

func (s settled) Sub() (rdma.Transport, error) { return s.Transport.Sub() }

// Settle is what rdmatest asks for.
func (s settled) Settle() {
	if err := rdmatest.Settle(s.all, fleet.Patience); err != nil {
		panic(err)
	}
}

// all takes part, whatever is decided.
type all struct{}

func (all) Land(int, vote.Kind, uint32, []byte) error { return nil }
func (all) Has(int) bool                              { return true }
func (all) Expelled(int)                              {}
func (all) Farewell() uint64                          { return 1 }

func open(t *testing.T, n int, net *Net, survives bool) []rdma.Transport {
	t.Helper()
	ts, ranked, errs := make([]rdma.Transport, n), make([]rdmatest.Framer, n), make([]error, n)
	ctx, cancel := context.WithTimeout(t.Context(), fleet.Patience)
	defer cancel()
	var ranks sync.WaitGroup
	for rank := range n {
		ranks.Go(func() {
			made, err := remote.Open(ctx, remote.Config{Rank: rank, Size: n, Generation: 1, Survives: survives}, net.Wire(rank))
			if err == nil && survives {
				made.Survive(all{})
			}
			ts[rank], ranked[rank], errs[rank] = settled{made, ranked, net}, made, err
		})
	}
	ranks.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return ts
}

// Replication needs no more of a network than a wire.Wire says, and makes up for every
// connection that is lost, whichever end sees that first. Every other network is inline, and
// on every other two the job goes on when a rank dies.
func TestConformance(t *testing.T) {
	seed := rand.Uint64()
	var nets []*Net
	rdmatest.Run(t, func(t *testing.T, n int) []rdma.Transport {
		net := New(n, seed+uint64(len(nets)), (seed+uint64(len(nets)))%2 == 0)
		nets = append(nets, net)
		return open(t, n, net, len(nets)/2%2 == 0)
	})
	lost, after := 0, 0
	for _, net := range nets {
		l, a := net.Lost()
		lost, after = lost+l, after+a
	}
	t.Logf("%d connections were lost, %d of them seen late; the first seed is %d", lost, after, seed)
	if after < 100 {
		t.Error("too few")
	}
}

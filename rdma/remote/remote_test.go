package remote

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/rdmatest"
	"malt/rdma/tcp"
	"malt/rdma/wire"
)

// settled is a rank among others of this process that can wait until everything
// that was sent between them has landed.
type settled struct {
	*Transport
	all []*Transport
	tb  testing.TB
}

// Close also asserts that nothing was amiss with what was received: a connection
// that breaks is made again, and so would hide it.
func (s settled) Close() error {
	err := s.Transport.Close()
	for _, l := range s.links {
		if l != nil && errors.Is(l.lastWhy(), rdma.ErrCorrupt) {
			s.tb.Errorf("rank %d with %d: %v", s.Rank(), l.peer, l.lastWhy())
		}
	}
	return err
}

// Settle is what rdmatest asks for.
func (s settled) Settle() {
	all := make([]rdmatest.Framer, len(s.all))
	for i, t := range s.all {
		all[i] = t
	}
	if err := rdmatest.Settle(all, fleet.Patience); err != nil {
		panic(err)
	}
}

func (s settled) Sub() (rdma.Transport, error) { return s.Transport.Sub() }

// config is what a rank over TCP has to know.
type config struct {
	Config
	TCP
	wire wire.Wire // nil: one of TCP
}

type TCP = tcp.Config

func join(ctx context.Context, c config) (*Transport, error) {
	if c.wire == nil {
		c.wire = tcp.New(c.TCP)
	}
	return Open(ctx, c.Config, c.wire)
}

// open makes n ranks of one job over loopback.
func openRanks(t testing.TB, n int, change func(*config)) []*Transport {
	t.Helper()
	configs := configure(t, n)
	if change != nil {
		for rank := range configs {
			change(&configs[rank])
		}
	}
	return openConfigs(t, configs)
}

func openConfigs(t testing.TB, configs []config) []*Transport {
	t.Helper()
	all := make([]*Transport, len(configs))
	errs := make([]error, len(configs))
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	var wg sync.WaitGroup
	for rank := range configs {
		wg.Go(func() {
			all[rank], errs[rank] = join(ctx, configs[rank])
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// configure is what n ranks of one job have to know.
func configure(t testing.TB, n int) []config {
	t.Helper()
	configs := make([]config, n)
	peers := make([][]string, n)
	for rank := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		peers[rank] = []string{l.Addr().String()}
		configs[rank].Config = Config{Rank: rank, Size: n, Generation: 1}
		configs[rank].TCP = TCP{Job: t.Name(), Token: []byte("secret of " + t.Name()), Listeners: []net.Listener{l}, Peers: peers}
	}
	return configs
}

func settle(tb testing.TB, all []*Transport) []rdma.Transport {
	ts := make([]rdma.Transport, len(all))
	for i, t := range all {
		ts[i] = settled{t, all, tb}
	}
	return ts
}

func TestConformance(t *testing.T) {
	rdmatest.Run(t, func(t *testing.T, n int) []rdma.Transport { return settle(t, openRanks(t, n, nil)) })
}

// closeAll closes all ranks, one after the other.
func closeAll(t testing.TB, all []*Transport) {
	t.Helper()
	for _, r := range all {
		if err := r.Close(); err != nil {
			t.Errorf("rank %d: Close: %v", r.Rank(), err)
		}
	}
}

// Where all are known to listen, a rank that does not any more is not waited for.
func TestOpenWithoutOneThatHasEnded(t *testing.T) {
	t.Parallel()
	configs := configure(t, 3)
	configs[2].Listeners[0].Close()
	errs := make([]error, 2)
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	var wg sync.WaitGroup
	for rank := range 2 {
		c := configs[rank]
		c.Listening, c.Unreachable = true, 2*time.Second
		wg.Go(func() { _, errs[rank] = join(ctx, c) })
	}
	wg.Wait()
	for rank, err := range errs {
		var peer *rdma.PeerError
		if !errors.As(err, &peer) || peer.Rank != 2 || !strings.Contains(err.Error(), configs[2].Peers[2][0]) {
			t.Errorf("rank %d: %v", rank, err)
		}
	}
}

// breakUp ends the connection, if there is one; another one will be made.
func (l *link) breakUp(why error) {
	l.mu.Lock()
	l.why = why
	c := l.current()
	l.mu.Unlock()
	if c != nil {
		c.Close()
	}
}

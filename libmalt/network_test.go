package libmalt_test

import (
	"errors"
	"net"
	"os"
	"sync"
	"testing"

	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
	"malt/rdma/remote"
	"malt/rdma/tcp"
)

// open makes the transports of a world of n: over inmem, or what
// MALT_TEST_TRANSPORT names, so that the whole suite can run over each.
func open(t testing.TB, n int) []rdma.Transport {
	t.Helper()
	name := os.Getenv("MALT_TEST_TRANSPORT")
	if name == "" {
		return inmem.New(n)
	}
	make, ok := transports()[name]
	if !ok {
		t.Fatalf("MALT_TEST_TRANSPORT=%s: there are inmem, shm and tcp", name)
	}
	return make(t, n)
}

// networked makes ranks in this process that know each other by tcp only.
func networked(t testing.TB, n int) []rdma.Transport {
	t.Helper()
	all, errs := make([]rdma.Transport, n), make([]error, n)
	listeners, peers := make([]net.Listener, n), make([][]string, n)
	for r := range n {
		var err error
		if listeners[r], err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
			t.Fatal(err)
		}
		peers[r] = []string{listeners[r].Addr().String()}
	}
	ctx := background(t)
	var ranks sync.WaitGroup
	for r := range n {
		ranks.Go(func() {
			all[r], errs[r] = remote.Open(ctx, remote.Config{Rank: r, Size: n},
				tcp.New(tcp.Config{Job: "test", Token: []byte("token"), Listeners: listeners[r : r+1], Peers: peers}))
		})
	}
	ranks.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return all
}

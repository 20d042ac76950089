package libmalt_test

import (
	"context"
	"net"
	"sync"
	"testing"

	"malt/rdma"
	"malt/rdma/remote"
	"malt/rdma/tcp"
)

// overTCP opens n ranks that are near nobody, over loopback.
func overTCP(t testing.TB, n int) []rdma.Transport {
	t.Helper()
	peers, listeners := make([][]string, n), make([]net.Listener, n)
	for r := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		peers[r], listeners[r] = []string{l.Addr().String()}, l
	}
	ts, errs := make([]rdma.Transport, n), make([]error, n)
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() {
			ts[r], errs[r] = remote.Open(context.Background(), remote.Config{Rank: r, Size: n, Generation: 1},
				tcp.New(tcp.Config{Job: t.Name(), Token: []byte("token"), Listeners: listeners[r : r+1], Peers: peers}))
		})
	}
	all.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return ts
}

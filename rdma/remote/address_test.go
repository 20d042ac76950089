package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"malt/internal/fleet"
	"malt/rdma"
)

func listenAt(t *testing.T, address string) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// Of several addresses one is found at which the peer itself answers, and after
// that both ends stay with it: what nobody uses is closed, and what is left is
// enough to meet again.
func TestAddressesAreTried(t *testing.T) {
	stranger := listenAt(t, "127.0.0.1:0")
	defer stranger.Close()
	go func() {
		for {
			c, err := stranger.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write(make([]byte, 200))
			c.Close()
		}
	}()
	nobody := listenAt(t, "127.0.0.3:0")
	nobody.Close()
	peers := make([][]string, 2)
	peers[0] = []string{nobody.Addr().String(), stranger.Addr().String()}
	configs := configure(t, 2)
	for rank := range configs {
		configs[rank].Listeners[0].Close()
		configs[rank].Listeners = []net.Listener{listenAt(t, "127.0.0.2:0"), listenAt(t, "127.0.0.1:0")}
		for _, l := range configs[rank].Listeners {
			peers[rank] = append(peers[rank], l.Addr().String())
		}
		configs[rank].Peers = peers
	}
	all := openConfigs(t, configs)
	// Rank 1 dials 127.0.0.2, and by that the kernel has it come from 127.0.0.1.
	for rank, used := range []int{0, 1} {
		for i, l := range configs[rank].Listeners {
			c, err := net.Dial("tcp", l.Addr().String())
			if i == used && err != nil || i != used && !errors.Is(err, syscall.ECONNREFUSED) {
				t.Errorf("rank %d at %v: %v", rank, l.Addr(), err)
			}
			if err == nil {
				c.Close()
			}
		}
		link := all[1-rank].links[rank]
		if want := []string{configs[rank].Listeners[used].Addr().String()}; !slices.Equal(link.addresses(), want) {
			t.Errorf("rank %d looks for rank %d at %v, expected %v", 1-rank, rank, link.addresses(), want)
		}
	}
	all[0].links[1].breakUp(nil)
	done := make(chan error, 2)
	for _, r := range all {
		go func() { done <- exchange(r, "queue", 20, nil) }()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	closeAll(t, all)
}

// A peer that comes from where it does not listen may be looked for anywhere, so
// all stays open.
func TestTranslatedAddress(t *testing.T) {
	configs := configure(t, 2)
	configs[1].Listeners[0].Close()
	configs[1].Listeners = []net.Listener{listenAt(t, "127.0.0.2:0"), listenAt(t, "127.0.0.3:0")}
	configs[1].Peers[1] = nil
	for _, l := range configs[1].Listeners {
		configs[1].Peers[1] = append(configs[1].Peers[1], l.Addr().String())
	}
	all := openConfigs(t, configs)
	defer closeAll(t, all)
	for _, l := range configs[1].Listeners {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Errorf("at %v: %v", l.Addr(), err)
			continue
		}
		c.Close()
	}
	if at := all[0].links[1].addresses(); !slices.Equal(at, configs[1].Peers[1]) {
		t.Errorf("rank 0 looks for rank 1 at %v", at)
	}
	if err := all[0].links[1].probe(true, time.Second); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("rank 1 is not found: %v", err)
	}
}

// Where all ranks are known to listen, one that cannot be connected with is dead, whoever
// would have dialled.
func TestListeningAndGone(t *testing.T) {
	for gone := range 2 {
		t.Run(fmt.Sprint(gone), func(t *testing.T) {
			t.Parallel()
			configs := configure(t, 2)
			for rank := range configs {
				configs[rank].Listening = true
				configs[rank].Unreachable = 2 * time.Second
			}
			configs[gone].Listeners[0].Close()
			left := 1 - gone
			_, err := join(context.Background(), configs[left])
			var dead *rdma.PeerError
			if !errors.As(err, &dead) || dead.Rank != gone || dead.Kind != rdma.Unreachable {
				t.Fatalf("%v", err)
			}
			if word := configs[left].Peers[gone][0]; !strings.Contains(err.Error(), word) {
				t.Errorf("%v; expected %q", err, word)
			}
		})
	}
}

// A peer that is slow to begin is waited for, though one of its addresses is
// refused, and another is somebody else's.
func TestListeningAndSlow(t *testing.T) {
	configs := configure(t, 2)
	nobody := listenAt(t, "127.0.0.3:0")
	nobody.Close()
	peers := [][]string{append([]string{nobody.Addr().String()}, configs[0].Peers[0]...), configs[0].Peers[1]}
	for rank := range configs {
		configs[rank].Listening, configs[rank].Peers = true, peers
	}
	early := make(chan *Transport)
	go func() {
		tr, err := join(context.Background(), configs[1])
		if err != nil {
			t.Error(err)
		}
		early <- tr
	}()
	// It has dialled, and waits for an answer.
	l := configs[0].Listeners[0].(*net.TCPListener)
	raw, err := l.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	if err := raw.Control(func(fd uintptr) {
		if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(fleet.Patience/time.Millisecond)); n != 1 {
			t.Errorf("nobody dials: %v", err)
		}
	}); err != nil {
		t.Fatal(err)
	}
	late, err := join(context.Background(), configs[0])
	if err != nil {
		t.Fatal(err)
	}
	closeAll(t, []*Transport{late, <-early})
}

package tcp

import (
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"malt/rdma"
	"malt/rdma/wire"
)

// Connections have the congestion control that was asked for: reno is there on every
// Linux, and allowed to all.
func TestCongestion(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n := New(Config{Token: []byte("token"), Congestion: "reno", Peers: [][]string{{l.Addr().String()}}}).(*network)
	if err := n.cfg.check(1); err != nil {
		t.Fatal(err)
	}
	out, err := n.Dial(t.Context(), 0, time.Minute, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	accepted, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	in, err := n.enter(accepted.(*net.TCPConn))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for _, c := range []*conn{out.(*conn), in} {
		if name, err := unix.GetsockoptString(c.fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION); err != nil || name != "reno" {
			t.Errorf("%q, %v", name, err)
		}
	}
}

func TestForbiddenCongestion(t *testing.T) {
	for _, root := range []bool{false, true} {
		if err := noCongestion("bbr", unix.EPERM, root); !strings.Contains(err.Error(), "not for ordinary users") || !strings.Contains(err.Error(), "reno") {
			t.Errorf("%v", err)
		}
	}
}

func TestNoSuchCongestion(t *testing.T) {
	err := New(Config{Token: []byte("token"), Congestion: "cubik", Peers: make([][]string, 1)}).Listen(wire.Host{Size: 1})
	if !errors.Is(err, rdma.ErrConfig) || !strings.Contains(err.Error(), `"cubik" (MALT_CONGESTION)`) || !strings.Contains(err.Error(), "reno") {
		t.Errorf("%v", err)
	}
}

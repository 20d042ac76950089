package tcp

import (
	"errors"
	"net"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"malt/rdma"
)

// Connections have the congestion control that was asked for: reno is there on every
// Linux, and allowed to all. Those that come in are made by the rank, the others by a
// link.
func TestCongestion(t *testing.T) {
	config := configure(t, 1)[0]
	defer config.Listeners[0].Close()
	config.Congestion = "reno"
	if err := config.check(); err != nil {
		t.Fatal(err)
	}
	r := &rank{cfg: config}
	l := &link{rank: r, ctx: t.Context(), to: []string{config.Listeners[0].Addr().String()}}
	out, err := l.open(patience)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	accepted, err := config.Listeners[0].Accept()
	if err != nil {
		t.Fatal(err)
	}
	in, err := r.enter(accepted.(*net.TCPConn))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for _, c := range []*conn{out, in} {
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
	c := configure(t, 2)[0]
	c.Congestion = "cubik"
	_, err := Open(t.Context(), c)
	if !errors.Is(err, rdma.ErrConfig) || !strings.Contains(err.Error(), `"cubik" (MALT_CONGESTION)`) || !strings.Contains(err.Error(), "reno") {
		t.Errorf("%v", err)
	}
}

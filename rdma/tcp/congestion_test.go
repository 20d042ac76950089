package tcp

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"malt/rdma"
)

// Connections have the congestion control that was asked for, at both ends: reno is
// there on every Linux, and allowed to all.
func TestCongestion(t *testing.T) {
	configs := configure(t, 2)
	for r := range configs {
		configs[r].Congestion = "reno"
	}
	all := openConfigs(t, configs)
	for r, rank := range all {
		c := rank.links[1-r].current()
		if name, err := unix.GetsockoptString(c.fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION); err != nil || name != "reno" {
			t.Errorf("rank %d: %q, %v", r, name, err)
		}
	}
	closeAll(t, all)
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
	var config *rdma.ConfigError
	if !errors.As(err, &config) || !strings.Contains(err.Error(), `"cubik" (MALT_CONGESTION)`) || !strings.Contains(err.Error(), "reno") {
		t.Errorf("%v", err)
	}
}

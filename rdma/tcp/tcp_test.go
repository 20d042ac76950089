package tcp

import (
	"crypto/sha256"
	"os"
	"syscall"
	"testing"

	"malt/rdma/internal/handshake"
	"malt/rdma/wire"
)

// Who has the token and does not fit is told why; of others the rank decides.
func TestPermit(t *testing.T) {
	n := &network{cfg: Config{Job: "job"}, host: wire.Host{Size: 2, Generation: 1, Permit: func(rank int, incarnation uint64) handshake.Verdict {
		if rank != 1 || incarnation != 7 {
			return handshake.OtherProcess
		}
		return handshake.Accepted
	}}}
	for _, c := range []struct {
		want   handshake.Verdict
		change func(h *handshake.Hello)
	}{
		{handshake.Accepted, func(*handshake.Hello) {}},
		{handshake.OtherJob, func(h *handshake.Hello) { h.Job[0]++ }},
		{handshake.OtherSize, func(h *handshake.Hello) { h.Size++ }},
		{handshake.NoSuchRank, func(h *handshake.Hello) { h.To = 1 }},
		{handshake.NoSuchRank, func(h *handshake.Hello) { h.From = 2 }},
		{handshake.OtherGeneration, func(h *handshake.Hello) { h.Generation++ }},
		{handshake.OtherProcess, func(h *handshake.Hello) { h.Incarnation++ }},
	} {
		h := handshake.Hello{Job: sha256.Sum256([]byte("job")), From: 1, Size: 2, Generation: 1, Incarnation: 7}
		c.change(&h)
		if v := n.permit(&h); v != c.want {
			t.Errorf("%+v: %v; expected %v", h, v, c.want)
		}
	}
}

func TestMostTelling(t *testing.T) {
	refused, silent := error(syscall.ECONNREFUSED), error(os.ErrDeadlineExceeded)
	for _, c := range []struct {
		errs []error
		want error
	}{
		{[]error{refused}, refused}, {[]error{silent}, silent}, {[]error{refused, silent}, silent}, {[]error{silent, refused}, silent}, {[]error{refused, refused}, refused},
	} {
		if got := mostTelling(c.errs); got != c.want {
			t.Errorf("%v: %v, expected %v", c.errs, got, c.want)
		}
	}
}

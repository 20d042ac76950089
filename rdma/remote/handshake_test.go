package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/internal/handshake"
)

// Over TLS the same is exchanged.
func TestTLS(t *testing.T) {
	all := openRanks(t, 2, func(c *config) { c.Encrypt = handshake.Always })
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

// Whoever cannot prove the token changes nothing: garbage, nothing at all, half
// a handshake, a wrong token, in numbers.
func TestStrangersHaveNoEffect(t *testing.T) {
	all := openRanks(t, 2, nil)
	address := all[0].wire.Addresses(0)[0]
	var open []net.Conn
	hello := binary.LittleEndian.AppendUint64([]byte("MALTTCP1"), 1)
	hello = append(hello, make([]byte, handshake.HelloBytes-16)...)
	for i := range 200 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		switch i % 4 {
		case 0: // nothing
		case 1:
			_, _ = c.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 1000))
		case 2:
			_, _ = c.Write(hello[:50])
		case 3:
			_, _ = c.Write(append(hello, make([]byte, handshake.ProofBytes)...))
		}
	}
	done := make(chan error, 2)
	all[1].links[0].breakUp(nil) // ranks get through all the same
	for _, r := range all {
		go func() { done <- exchange(r, "queue", 50, nil) }()
	}
	for range 2 {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	closeAll(t, all)
	for _, c := range open {
		c.Close()
	}
}

// What every rank must have been told alike is told when it is not.
func TestOpenRefuses(t *testing.T) {
	for what, change := range map[string]func(c *config){
		"token":      func(c *config) { c.Token = []byte("another") },
		"generation": func(c *config) { c.Generation++ },
		"job":        func(c *config) { c.Job = "another" },
		"encrypt":    func(c *config) { c.Encrypt = handshake.Always },
	} {
		configs := configure(t, 2)
		configs[0].Encrypt = handshake.Never
		change(&configs[1])
		ctx, cancel := context.WithCancel(context.Background())
		first := make(chan error, 1)
		go func() {
			_, err := join(ctx, configs[0])
			first <- err
		}()
		_, err := join(context.Background(), configs[1])
		if !errors.Is(err, rdma.ErrConfig) || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
		cancel()
		if err := <-first; !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), configs[0].Listeners[0].Addr().String()) {
			t.Errorf("%s: the other rank says %v", what, err)
		}
	}
	// The dialling side names where it dialled, and why that failed.
	configs := configure(t, 2)
	configs[0].Listeners[0].Close()
	fleet.Growing(t, func(ctx context.Context) error {
		_, err := join(ctx, configs[1])
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), configs[0].Peers[0][0]) || !strings.Contains(err.Error(), "refused") {
			return fmt.Errorf("nobody listens: %w", err)
		}
		return nil
	})
	for what, change := range map[string]func(c *config){
		"no token":      func(c *config) { c.Token = nil },
		"rank 2 of 2":   func(c *config) { c.Rank = 2 },
		"2 s or more":   func(c *config) { c.Unreachable = time.Second },
		"0.2 s or more": func(c *config) { c.Survives, c.Unreachable = true, 100*time.Millisecond },
		"no address":    func(c *config) { c.Peers = make([][]string, 2) },
		"no listener":   func(c *config) { c.Listeners = nil },
	} {
		configs := configure(t, 2)
		configs[0].Encrypt = handshake.Never
		change(&configs[1])
		if _, err := join(context.Background(), configs[1]); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%v; expected %q", err, what)
		}
	}
}

// Who belongs to the job and is not a rank that may dial here is told why.
func TestPermit(t *testing.T) {
	all := openRanks(t, 2, nil)
	defer closeAll(t, all)
	one, zero := all[0].links[1].incarnation, all[1].links[0].incarnation
	for _, c := range []struct {
		want        handshake.Verdict
		at, from    int
		incarnation uint64
	}{
		{handshake.Accepted, 0, 1, one},
		{handshake.NoSuchRank, 0, 2, one},
		{handshake.NoSuchRank, 0, 0, one},
		{handshake.OtherProcess, 0, 1, one + 1},
		{handshake.NoSuchRank, 1, 0, zero}, // the lower of two only asks whether it is gone
	} {
		if v := all[c.at].permit(c.from, c.incarnation); v != c.want {
			t.Errorf("%+v: %v", c, v)
		}
	}
	all[0].finish(1, all[0].links[1].unreachable())
	for incarnation, want := range map[uint64]handshake.Verdict{one: handshake.CountedDead, one + 1: handshake.OtherProcess} {
		if v := all[0].permit(1, incarnation); v != want {
			t.Errorf("of a rank that cannot be reached: %v, expected %v", v, want)
		}
	}
	all[1].finish(0, rdma.ErrLeft)
	if v := all[1].permit(0, zero); v != handshake.OtherProcess {
		t.Errorf("of a rank that has left: %v", v)
	}
}

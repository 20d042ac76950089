package meeting

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/internal/handshake"
)

var someAddresses = []netip.AddrPort{netip.MustParseAddrPort("192.0.2.1:1")}

// Whoever cannot prove the token changes nothing, in whatever numbers: nothing
// said, half a handshake, another protocol, a wrong proof, connections that end
// at once as those of a port scan do.
func TestStrangersChangeNothing(t *testing.T) {
	all := job(t, 3, "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	results := make(chan result)
	start(ctx, all[0], results)
	hello := binary.LittleEndian.AppendUint64(nil, protocol.Magic)
	hello = binary.LittleEndian.AppendUint64(hello, uint64(protocol.Version))
	hello = append(hello, make([]byte, handshake.HelloBytes-16)...)
	var open []net.Conn
	for i := range 200 {
		c, err := net.Dial("tcp", all[0].Store)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		switch i % 5 {
		case 0: // nothing
		case 1:
			_, _ = c.Write(bytes.Repeat([]byte("GET / HTTP/1.1\r\n"), 1000))
		case 2:
			_, _ = c.Write(hello[:50])
		case 3:
			_, _ = c.Write(append(hello, bytes.Repeat([]byte{0xff}, 1<<16)...))
		case 4:
			c.Close()
		}
	}
	start(ctx, all[1], results)
	start(ctx, all[2], results)
	for range 3 {
		r := <-results
		if r.err != nil {
			t.Errorf("rank %d: %v", r.rank, r.err)
		}
		for _, l := range r.listeners {
			l.Close()
		}
	}
	for _, c := range open {
		c.Close()
	}
}

// visit has somebody with the token say something to rank 0.
func visit(t *testing.T, c Config, said []byte) (answer []byte) {
	t.Helper()
	conn, err := net.Dial("tcp", c.Store)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(fleet.Patience))
	if _, err := newSelf(&c).Dial(conn, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write(said); err != nil {
		t.Fatal(err)
	}
	_ = conn.(*net.TCPConn).CloseWrite()
	answer, err = io.ReadAll(conn)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !strings.Contains(err.Error(), "reset") {
		t.Errorf("%q: %v", said, err)
	}
	return answer
}

// Who has the token and does not say who it is is let go; what it says is
// bounded.
func TestNoCard(t *testing.T) {
	all := job(t, 2, "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	results := make(chan result)
	start(ctx, all[0], results)
	for _, said := range [][]byte{
		nil,
		{1, 0},
		{255, 255, 255, 255, '{'},
		(&message{Got: &struct{}{}}).encode(),
		(&message{Here: &card{}}).encode(), // no address
		(&message{Table: &tableMessage{Job: newJob()}}).encode(),
		binary.LittleEndian.AppendUint32(nil, maxFromRank+1),
		append(binary.LittleEndian.AppendUint32(nil, 10), "0123456789"...),
	} {
		if answer := visit(t, all[1], said); len(answer) > 0 {
			t.Errorf("%q got the answer %q", said, answer)
		}
	}
	start(ctx, all[1], results)
	for range 2 {
		r := <-results
		if r.err != nil {
			t.Errorf("rank %d: %v", r.rank, r.err)
		}
		for _, l := range r.listeners {
			l.Close()
		}
	}
}

// There are ranks that nobody can be.
func TestPermit(t *testing.T) {
	for _, c := range []struct {
		from, to uint32
		want     handshake.Verdict
	}{
		{1, 0, handshake.Accepted}, {MaxSize - 1, 0, handshake.Accepted},
		{0, 0, handshake.NoSuchRank}, {MaxSize, 0, handshake.NoSuchRank}, {2, 1, handshake.NoSuchRank},
	} {
		if v := permit(&handshake.Hello{From: c.from, To: c.to}); v != c.want {
			t.Errorf("from %d to %d: %v", c.from, c.to, v)
		}
	}
}

// A rank that says what it must not, once it is there, ends the meeting.
func TestMalformedRank(t *testing.T) {
	t.Parallel()
	for name, after := range map[string][]byte{
		"got too early": (&message{Got: &struct{}{}}).encode(),
		"here again":    (&message{Here: &card{Addresses: someAddresses}}).encode(),
		"garbage":       append(binary.LittleEndian.AppendUint32(nil, 4), "true"...),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all := job(t, 3, "127.0.0.1:0")
			results := make(chan result)
			ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
			defer cancel()
			start(ctx, all[0], results)
			here := (&message{Here: &card{Version: all[0].Version, Addresses: someAddresses}}).encode()
			answer := visit(t, all[1], append(here, after...))
			r := <-results
			var dead *rdma.PeerError
			if !errors.As(r.err, &dead) || dead.Rank != 1 || !strings.Contains(r.err.Error(), "not allowed") {
				t.Errorf("%v", r.err)
			}
			if !bytes.Contains(answer, []byte("not allowed")) {
				t.Errorf("it was told %q", answer)
			}
		})
	}
}

// A rank knocks at somebody who is not rank 0: another program, or one that
// cannot prove the token.
func TestImpostorAtTheStore(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(c net.Conn)
		says   []string
	}{
		"another program": {func(c net.Conn) {
			_, _ = c.Write(bytes.Repeat([]byte("220 smtp.example.org ready\r\n"), 10))
		}, []string{"not a rank of MALT", "another port"}},
		"another token": {func(c net.Conn) {
			other := newSelf(&Config{Size: 2, Token: "other"})
			_, _ = other.Accept(c, permit)
		}, []string{"MALT_TOKEN"}},
		"another version": {func(c net.Conn) {
			newer := protocol
			newer.Version++
			_, _ = handshake.New(newer, []byte("t"), handshake.Hello{}).Accept(c, permit)
		}, []string{"version 1 here, 2 there"}},
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := l.Accept()
			if err == nil {
				c.answer(conn)
				conn.Close()
			}
		}()
		_, _, err = Meet(context.Background(), Config{Rank: 1, Size: 2, Store: l.Addr().String(), Token: "t"})
		l.Close()
		if !errors.Is(err, rdma.ErrConfig) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, word := range append(c.says, l.Addr().String(), "rank 1") {
			if !strings.Contains(err.Error(), word) {
				t.Errorf("%s: %v; expected %q", name, err, word)
			}
		}
	}
}

// Where somebody accepts and says nothing, another program or a rank 0 that is
// stopped, rank 0 is absent from the first moment on, and soon it is told why.
func TestSilenceAtTheStore(t *testing.T) {
	meet := func(ctx context.Context, t *testing.T) error {
		const why = "accepts and sends nothing"
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		var heard []string
		c := Config{Rank: 1, Size: 2, Store: l.Addr().String(), Token: "t"}
		c.Report = func(p Progress) {
			if !slices.Equal(p.Absent, []int{0}) {
				t.Errorf("%+v", p)
			}
			if heard = append(heard, p.Detail); strings.Contains(p.Detail, why) {
				cancel()
			}
		}
		_, _, err = Meet(ctx, c)
		if err == nil || !strings.Contains(err.Error(), c.Store+" "+why) || len(heard) != 2 || heard[0] != "rank 0 at "+c.Store+" has not answered yet" {
			return fmt.Errorf("%q: %w", heard, err)
		}
		return nil
	}
	t.Run("time is over", func(t *testing.T) {
		t.Parallel()
		fleet.Growing(t, func(ctx context.Context) error { return meet(ctx, t) })
	})
	t.Run("time enough", func(t *testing.T) {
		t.Parallel()
		took := fleet.Stopwatch()
		err := meet(t.Context(), t)
		if d := took(); err != nil || d > 5*time.Second {
			t.Errorf("%v, after %v", err, d)
		}
	})
}

// A rank 0 that says what it must not is not believed.
func TestMalformedRankZero(t *testing.T) {
	table := func(n int) *message {
		m := &tableMessage{Job: newJob()}
		for range n {
			m.Ranks = append(m.Ranks, seatCard{Addresses: someAddresses})
		}
		return &message{Table: m}
	}
	for name, said := range map[string][]byte{
		"garbage":        append(binary.LittleEndian.AppendUint32(nil, 4), "true"...),
		"too long":       binary.LittleEndian.AppendUint32(nil, 1<<30),
		"too many ranks": table(3).encode(),
		"too few ranks":  table(1).encode(),
		"here":           (&message{Here: &card{Addresses: someAddresses}}).encode(),
		"nothing":        nil,
	} {
		c := Config{Rank: 1, Size: 2, Token: "t"}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		c.Store = l.Addr().String()
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			if _, err := newSelf(&Config{Size: 2, Token: "t"}).Accept(conn, permit); err == nil {
				_, _ = conn.Write(said)
				_ = conn.(*net.TCPConn).CloseWrite()
				_, _ = io.Copy(io.Discard, conn)
			}
		}()
		_, ls, err := Meet(context.Background(), c)
		l.Close()
		var dead *rdma.PeerError
		if !errors.As(err, &dead) || dead.Rank != 0 || ls != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func encrypted(t *testing.T) *tls.Config {
	t.Helper()
	cfg, err := handshake.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// Who stands between a rank and rank 0, and speaks TLS with both, learns nothing
// and passes nothing on.
func TestManInTheMiddle(t *testing.T) {
	all := job(t, 2, "127.0.0.1:0")
	all[0].Encrypt, all[1].Encrypt = handshake.Always, handshake.Always
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	results := make(chan result)
	start(ctx, all[0], results)
	l, err := tls.Listen("tcp", "127.0.0.1:0", encrypted(t))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		victim, err := l.Accept()
		if err != nil {
			return
		}
		defer victim.Close()
		attacked, err := tls.Dial("tcp", all[0].Store, encrypted(t))
		if err != nil {
			t.Error(err)
			return
		}
		defer attacked.Close()
		go func() { _, _ = io.Copy(attacked, victim) }()
		_, _ = io.Copy(victim, attacked)
	}()
	victim := all[1]
	victim.Store = l.Addr().String()
	if _, _, err := Meet(ctx, victim); !errors.Is(err, rdma.ErrConfig) || !strings.Contains(err.Error(), "MALT_TOKEN") {
		t.Errorf("through a stranger's hands: %v", err)
	}
	start(ctx, all[1], results)
	for range 2 {
		r := <-results
		if r.err != nil {
			t.Errorf("rank %d: %v", r.rank, r.err)
		}
		for _, l := range r.listeners {
			l.Close()
		}
	}
}

// Where rank 0 encrypts and another rank does not, or the other way round, all say
// so at once; what strangers send, in TLS or not, means nothing.
func TestEncryptOnOneSide(t *testing.T) {
	for odd := range 2 {
		all := job(t, 3, "127.0.0.1:0")
		for r := range all {
			all[r].Encrypt = handshake.Never
		}
		all[odd].Encrypt = handshake.Always
		if odd == 0 {
			all[2].Encrypt = handshake.Always
		}
		ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
		results := make(chan result)
		start(ctx, all[0], results)
		start(ctx, all[2], results)
		stranger := all[1]
		stranger.Token = "another"
		if _, _, err := Meet(ctx, stranger); err == nil || !strings.Contains(err.Error(), "MALT_TOKEN") {
			t.Errorf("a stranger hears %v", err)
		}
		select {
		case r := <-results:
			t.Errorf("rank %d, after a stranger has come: %v", r.rank, r.err)
		default:
		}
		start(ctx, all[1], results)
		for range 3 {
			r := <-results
			if !errors.Is(r.err, rdma.ErrConfig) || !strings.Contains(r.err.Error(), "All ranks of a job must encrypt") {
				t.Errorf("rank %d: %v", r.rank, r.err)
			}
			says := []string{"rank 1 (at 127.0.0.1) does not encrypt, and rank 0 (", "rank 1 (at 127.0.0.1) encrypts, and rank 0 ("}[odd]
			if r.rank == 1 {
				says = []string{"this rank does not, and the other does", "this rank does, and the other does not"}[odd]
			}
			if r.err != nil && !strings.Contains(r.err.Error(), says) {
				t.Errorf("rank %d: %v; expected %q", r.rank, r.err, says)
			}
		}
		cancel()
	}
}

package rendezvous

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
)

var requests = []request{
	{},
	{version: 1, kind: wantRegion, rank: 3, size: 4, pid: 1234, token: "secret", name: "box weights"},
	{version: 65535, kind: 65535, rank: 1<<32 - 1, size: 1<<32 - 1, pid: 1<<32 - 1, token: "\x00", name: strings.Repeat("n", maxString)},
}

var replies = []reply{
	{},
	{refused: "no"},
	{text: "64 bytes, newest", readers: []uint32{0, 2, 1<<32 - 1}, sizes: []uint64{4096, 1<<64 - 1}},
	{readers: make([]uint32, MaxSize), sizes: make([]uint64, maxFiles), text: strings.Repeat("t", maxString), refused: strings.Repeat("r", maxString)},
}

func TestMessagesComeBack(t *testing.T) {
	for _, m := range requests {
		b := m.encode()
		if got, err := decodeRequest(b); err != nil || got != m || len(b) > maxMessage {
			t.Errorf("%+v became %+v, %v", m, got, err)
		}
	}
	for _, m := range replies {
		b := m.encode()
		if got, err := decodeReply(b); err != nil || !reflect.DeepEqual(got, m) || len(b) > maxMessage {
			t.Errorf("%d readers, %d sizes became %d, %d; %v", len(m.readers), len(m.sizes), len(got.readers), len(got.sizes), err)
		}
	}
}

func TestMalformedMessages(t *testing.T) {
	whole := requests[1].encode()
	for n := range whole {
		if _, err := decodeRequest(whole[:n]); !errors.Is(err, errMessage) {
			t.Errorf("the first %d of %d bytes were accepted", n, len(whole))
		}
	}
	if _, err := decodeRequest(append(whole, 0)); !errors.Is(err, errMessage) {
		t.Error("a byte too many was accepted")
	}
	whole = replies[2].encode()
	for n := range whole {
		if _, err := decodeReply(whole[:n]); !errors.Is(err, errMessage) {
			t.Errorf("the first %d of %d bytes were accepted", n, len(whole))
		}
	}
	for what, b := range map[string][]byte{
		"a string beyond its limit": appendString(nil, strings.Repeat("x", maxString+1)),
		"a count beyond the bytes":  binary.LittleEndian.AppendUint32(make([]byte, 8), 1<<30),
		"too many files":            append(binary.LittleEndian.AppendUint32(make([]byte, 12), maxFiles+1), make([]byte, 8*(maxFiles+1))...),
	} {
		if _, err := decodeReply(b); !errors.Is(err, errMessage) {
			t.Errorf("%s was accepted: %v", what, err)
		}
	}
}

// What decodes encodes to the same bytes, and nothing makes the decoder panic or
// take more memory than the message has bytes.
func FuzzRequest(f *testing.F) {
	for _, m := range requests {
		f.Add(m.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeRequest(b)
		if err == nil && !bytes.Equal(m.encode(), b) {
			t.Errorf("%x decodes to %+v, which encodes to %x", b, m, m.encode())
		}
	})
}

func FuzzReply(f *testing.F) {
	for _, m := range replies {
		f.Add(m.encode())
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeReply(b)
		if err == nil && !bytes.Equal(m.encode(), b) {
			t.Errorf("%x decodes to %+v, which encodes to %x", b, m, m.encode())
		}
		if len(m.readers)*4+len(m.sizes)*8 > len(b) {
			t.Errorf("%d bytes made %d readers and %d sizes", len(b), len(m.readers), len(m.sizes))
		}
	})
}

// TestStrangeClients connects to a rank's socket and says what no rank says. The
// rank refuses or hangs up, keeps nothing open, and goes on serving.
func TestStrangeClients(t *testing.T) {
	hosts := meet(t, 2)
	h := hosts[0]
	before := fleet.Holdings()
	good := request{version: protocol, kind: wantRegion, rank: 1, size: 2, pid: uint32(h.page.pid(1).Load()), token: "secret", name: "x"}
	frame := func(b []byte) []byte { return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...) }
	with := func(change func(m *request)) []byte {
		m := good
		change(&m)
		return frame(m.encode())
	}
	for what, c := range map[string]struct {
		bytes   []byte
		refusal string // "" hangs up
	}{
		"nothing":            {nil, ""},
		"half a length":      {[]byte{1, 0}, ""},
		"a length alone":     {[]byte{200, 0, 0, 0}, ""},
		"a great length":     {[]byte{0, 0, 0, 255}, ""},
		"noise":              {frame([]byte("hello, are you there?")), "malformed message"},
		"another version":    {with(func(m *request) { m.version = 9 }), "version 3 of the protocol, not 9\n\nAll ranks must use the same version of MALT."},
		"no token":           {with(func(m *request) { m.token = "" }), "token is wrong\n\n"},
		"no such rank":       {with(func(m *request) { m.rank = 7 }), "rank 7 does not exist"},
		"another's process":  {with(func(m *request) { m.pid++ }), "\n\nAll ranks of a machine must run in the same process namespace"},
		"an unknown request": {with(func(m *request) { m.kind = 77 }), "kind 77"},
		"another size":       {with(func(m *request) { m.size = 3 }), "size 2, not 3"},
	} {
		c0, err := net.DialUnix("unix", nil, address(h.job, 0))
		if err != nil {
			t.Fatal(err)
		}
		// A descriptor that nobody asked for must not stay open.
		pipe := make([]int, 2)
		if err := syscall.Pipe(pipe); err != nil {
			t.Fatal(err)
		}
		if len(c.bytes) > 0 {
			_, _, err = c0.WriteMsgUnix(c.bytes, syscall.UnixRights(pipe[0]), nil)
		}
		closeAll(pipe)
		if err != nil {
			t.Fatal(err)
		}
		if err := c0.CloseWrite(); err != nil {
			t.Fatal(err)
		}
		a, err := admit(c0)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.SetDeadline(time.Now().Add(10 * time.Second))
		b, fds, err := a.receive()
		closeAll(fds)
		m, derr := decodeReply(b)
		if c.refusal == "" && err == nil || c.refusal != "" && (derr != nil || !strings.Contains(m.refused, c.refusal)) {
			t.Errorf("%s: answered %q, %v, %v; expected %q", what, m.refused, derr, err, c.refusal)
		}
		a.Close()
	}
	if leaks := fleet.Leaks(before); len(leaks) > 0 {
		t.Errorf("left open: %q", leaks)
	}
	if _, err := h.Announce("x", Region{Readers: []int{1}}); err != nil {
		t.Fatal(err)
	}
	if err := hosts[1].Fetch(context.Background(), 0, patient, "x", []int{0}, func(int, Region) error { return nil }); err != nil {
		t.Errorf("afterwards: %v", err)
	}
}

func TestPageChecksItself(t *testing.T) {
	fresh := func() page {
		p := page(make([]byte, pageBytes(3)))
		p.format(3, 0)
		return p
	}
	if err := fresh().check(3); err != nil {
		t.Error(err)
	}
	if err := fresh().check(2); err == nil || !strings.Contains(err.Error(), "for 3 ranks") {
		t.Errorf("another size: %v", err)
	}
	p := fresh()
	p[offMagic] ^= 1
	if p.check(3) == nil {
		t.Error("another magic was accepted")
	}
}

func TestStatesGoUpOnly(t *testing.T) {
	for _, final := range []uint64{left, dead, aborted} {
		p := page(make([]byte, pageBytes(1)))
		for _, next := range []uint64{joining, alive, final} {
			if !p.advance(0, next) || p.state(0).Load() != next {
				t.Errorf("not advanced to %d", next)
			}
		}
		for next := uint64(absent); next <= aborted; next++ {
			if p.advance(0, next) {
				t.Errorf("went from %d to %d", final, next)
			}
		}
	}
}

// Members' records do not touch each other.
func TestPageRecords(t *testing.T) {
	p := page(make([]byte, pageBytes(3)))
	p.setReason(1, &rdma.PeerError{Rank: 2, Kind: rdma.Unreachable, Err: errors.New(strings.Repeat("r", 2*maxReason))})
	p.bell(1, Bells-1).Store(1<<64 - 1)
	for _, rank := range []int{0, 2} {
		at := offMembers + rank*perMember
		if !bytes.Equal(p[at:at+perMember], make([]byte, perMember)) {
			t.Errorf("rank 1's record reaches into rank %d's", rank)
		}
	}
	if got := p.reason(1); got.Rank != 2 || got.Kind != rdma.Unreachable || len(got.Err.Error()) != maxReason {
		t.Errorf("death %d of rank %d with %d bytes, expected %d of rank 2 with %d", got.Kind, got.Rank, len(got.Err.Error()), rdma.Unreachable, maxReason)
	}
}

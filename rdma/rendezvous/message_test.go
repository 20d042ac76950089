package rendezvous

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
)

var requests = []request{
	{},
	{Version: 1, Kind: wantRegion, Rank: 3, Size: 4, Pid: 1234, Token: []byte("secret"), Name: []byte("box weights")},
	{Version: 65535, Kind: 65535, Rank: 1<<32 - 1, Size: 1<<32 - 1, Pid: 1<<32 - 1, Token: []byte("\x00\xff"), Name: bytes.Repeat([]byte{255}, maxString)},
}

var replies = []reply{
	{},
	{Refused: "no"},
	{Text: "64 bytes, newest", Readers: []int{0, 2, 1<<32 - 1}, Sizes: []int{4096, 1<<63 - 1}, Try: 1<<64 - 1},
	{Readers: slices.Repeat([]int{MaxSize - 1}, MaxSize), Sizes: slices.Repeat([]int{1<<63 - 1}, maxFiles), Text: strings.Repeat("\x00", maxString), Refused: strings.Repeat("<", maxString)},
}

func comesBack[M request | reply](t *testing.T, m M) {
	b := encode(&m)
	if got, err := decode[M](b); err != nil || !reflect.DeepEqual(got, m) || len(b) > maxMessage {
		t.Errorf("%.200s of %d bytes became %.200s, %v", b, len(b), encode(&got), err)
	}
}

func TestMessagesComeBack(t *testing.T) {
	for _, m := range requests {
		comesBack(t, m)
	}
	for _, m := range replies {
		comesBack(t, m)
	}
}

func isMalformed[M request | reply](t *testing.T, what string, b []byte) {
	if m, err := decode[M](b); !errors.Is(err, errMessage) {
		t.Errorf("%s was accepted as %+v: %v", what, m, err)
	}
}

func TestMalformedMessages(t *testing.T) {
	whole := encode(&requests[1])
	for n := range whole {
		isMalformed[request](t, string(whole[:n]), whole[:n])
	}
	isMalformed[request](t, "a byte too many", append(whole, 0))
	whole = encode(&replies[2])
	for n := range whole {
		isMalformed[reply](t, string(whole[:n]), whole[:n])
	}
	isMalformed[request](t, "a rank below 0", []byte(`{"Rank": -1}`))
	isMalformed[request](t, "a token that is no bytes", []byte(`{"Token": "?"}`))
	isMalformed[reply](t, "a number for a text", []byte(`{"Text": 1}`))
	isMalformed[reply](t, "a size that is not a number", []byte(`{"Sizes": ["1"]}`))
}

// What decodes comes back, and nothing makes the decoder panic or take much more memory than the message
// has bytes.
func FuzzRequest(f *testing.F) {
	for _, m := range requests {
		f.Add(encode(&m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decode[request](b); err == nil && len(m.Token)+len(m.Name) > len(b) {
			t.Errorf("%d bytes made %d and %d", len(b), len(m.Token), len(m.Name))
		} else if err == nil {
			again(t, m)
		}
	})
}

func FuzzReply(f *testing.F) {
	for _, m := range replies {
		f.Add(encode(&m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decode[reply](b); err == nil && len(m.Readers)+len(m.Sizes) > len(b) {
			t.Errorf("%d bytes made %d readers and %d sizes", len(b), len(m.Readers), len(m.Sizes))
		} else if err == nil {
			again(t, m)
		}
	})
}

func again[M request | reply](t *testing.T, m M) {
	b := encode(&m)
	if got, err := decode[M](b); err != nil || !bytes.Equal(encode(&got), b) {
		t.Errorf("%s became %+v, %v", b, got, err)
	}
}

// TestStrangeClients connects to a rank's socket and says what no rank says. The
// rank refuses or hangs up, keeps nothing open, and goes on serving.
func TestStrangeClients(t *testing.T) {
	hosts := meet(t, 2)
	h := hosts[0]
	before := fleet.Holdings()
	good := request{Version: protocol, Kind: wantRegion, Rank: 1, Size: 2, Pid: uint32(h.page.pid(1).Load()), Token: []byte("secret"), Name: []byte("x")}
	frame := func(b []byte) []byte { return append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...) }
	with := func(change func(m *request)) []byte {
		m := good
		change(&m)
		return frame(encode(&m))
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
		"another version":    {with(func(m *request) { m.Version = 9 }), "version 4 of the protocol, not 9\n\nAll ranks must use the same version of MALT."},
		"no token":           {with(func(m *request) { m.Token = nil }), "token is wrong\n\n"},
		"no such rank":       {with(func(m *request) { m.Rank = 7 }), "rank 7 does not exist"},
		"another's process":  {with(func(m *request) { m.Pid++ }), "\n\nAll ranks of a machine must run in the same process namespace"},
		"an unknown request": {with(func(m *request) { m.Kind = 77 }), "kind 77"},
		"another size":       {with(func(m *request) { m.Size = 3 }), "size 2, not 3"},
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
		_ = a.SetDeadline(time.Now().Add(fleet.Patience))
		b, fds, err := a.receive()
		closeAll(fds)
		m, derr := decode[reply](b)
		if c.refusal == "" && err == nil || c.refusal != "" && (derr != nil || !strings.Contains(m.Refused, c.refusal)) {
			t.Errorf("%s: answered %q, %v, %v; expected %q", what, m.Refused, derr, err, c.refusal)
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

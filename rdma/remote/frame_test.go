package remote

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/bell"
	"malt/rdma/vote"
	"malt/rdma/wire"
)

// alone is a rank without connections, of which a test is the peer: box 1 is
// rank 1's, a queue, and read; box 2 is announced; box 1 of rank 0 is read by
// rank 1. ends closes it.
func alone(t testing.TB) (r *rank, l *link, in *inbox, ends func()) {
	t.Helper()
	c := Config{Rank: 0, Size: 2, Unreachable: time.Second, Generation: 1}
	r = &rank{
		cfg: c, wire: nowhere{}, meter: box.NewMeter(2), links: make([]*link, 2), ends: make([]end, 2),
		outs: map[string]bool{}, words: map[string]*words{},
	}
	r.later.rank = r
	l = r.addLink(1)
	r.bells = newBell(&bell.Set{})
	tr := newTransport(r, r.bells, nil)
	s := rdma.Spec{Bytes: 1000, Mode: rdma.Queue(2)}
	out, err := tr.Publish(context.Background(), "ours", s, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.feed(appendAnnounce(appendAnnounce(nil, 1, "theirs", s, false), 2, "unread", s, false)); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err = tr.Subscribe(ctx, "theirs", s, []int{1}) // asks, and does not wait for the answer
	if !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	if err := l.feed(appendFrame(nil, clock, 0, 1, 0, 0, 0)); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	ins, err := tr.Subscribe(context.Background(), "theirs", s, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	return r, l, ins[0].(*inbox), func() {
		r.later.stop()
		if err := errors.Join(ins[0].Close(), out.Close()); err != nil {
			t.Error(err)
		}
		l.finish(errClosing)
	}
}

// feed lands bytes.
func (l *link) feed(b []byte) error {
	a, c := net.Pipe()
	go func() {
		_, _ = a.Write(b)
		a.Close()
	}()
	defer c.Close()
	s := &session{link: l, conn: newConn(piped{from: c})}
	s.in = newInput(s.conn)
	return s.land()
}

// piped is a connection from which something can be read.
type piped struct {
	wire.Conn
	from net.Conn
}

func (p piped) Read(b []byte) (int, error)       { return p.from.Read(b) }
func (p piped) Inline() bool                     { return false }
func (p piped) Carried() (sent, received uint64) { return 0, 0 }

// nowhere is a Wire that leads to addresses.
type nowhere struct {
	wire.Wire
	at []string
}

func (n nowhere) Addresses(int) []string { return n.at }

// update is a data frame of box id, with length as it claims.
func update(id uint32, h box.Header, flags uint8, length int, payload []byte) []byte {
	f := header{kind: data, flags: flags, id: id, length: uint32(length)}
	b := f.append(nil)
	head := make([]byte, headBytes)
	h.Encode(head)
	b = append(b, head...)
	b = binary.LittleEndian.AppendUint64(b, h.Clock)
	b = binary.LittleEndian.AppendUint64(b, h.Seq)
	return append(b, payload...)
}

// good is the header of the next update of box 1.
func (in *inbox) good(seq uint64, bytes int) box.Header {
	h := in.replica.end.Header()
	h.Seq, h.Bytes, h.Clock = seq, uint64(bytes), seq
	return h
}

// Frames that do not fit their box, or no box, are refused before anything of
// them is written.
func TestFramesThatDoNotFit(t *testing.T) {
	pay := bytes.Repeat([]byte{7}, 100)
	for what, frame := range map[string]func(in *inbox) []byte{
		"kind 0":              func(*inbox) []byte { return appendFrame(nil, 0, 0, 1, 0) },
		"unknown kind":        func(*inbox) []byte { return appendFrame(nil, kinds, 0, 1, 0) },
		"unknown flags":       func(*inbox) []byte { return appendFrame(nil, ack, 1, 1, 0, 1) },
		"reserved bytes":      func(*inbox) []byte { b := appendFrame(nil, ack, 0, 1, 0, 1); b[2] = 1; return b },
		"too short":           func(*inbox) []byte { return appendFrame(nil, clock, 0, 1, 0, 1) },
		"too long":            func(*inbox) []byte { return appendFrame(nil, ack, 0, 1, 0, 1, 2) },
		"endless":             func(*inbox) []byte { b := appendFrame(nil, more, 0, 1, 0); b[7] = 0xff; return b },
		"unknown box":         func(in *inbox) []byte { return update(3, in.good(1, 100), flagLast, preamble+100, pay) },
		"unread box":          func(in *inbox) []byte { return update(2, in.good(1, 100), flagLast, preamble+100, pay) },
		"clock of an unread":  func(*inbox) []byte { return appendFrame(nil, clock, 0, 2, 0, 1, 1) },
		"clock of an unknown": func(*inbox) []byte { return appendFrame(nil, clock, 0, 9, 0, 1, 1) },
		"ack of an unknown":   func(*inbox) []byte { return appendFrame(nil, ack, 0, 9, 0, 1) },
		"forget an open box":  func(*inbox) []byte { return appendFrame(nil, done, 0, 1, 0) },
		"unknown words":       func(*inbox) []byte { return appendFrame(nil, setWords, 0, 9, 0, 1) },
		"too many words":      func(*inbox) []byte { return appendFrame(nil, makeWords, 0, 3, maxWords+1) },
		"more than the box":   func(in *inbox) []byte { return update(1, in.good(1, 1001), 0, preamble+100, pay) },
		"more than it says":   func(in *inbox) []byte { return update(1, in.good(1, 99), flagLast, preamble+100, pay) },
		"less than it says":   func(in *inbox) []byte { return update(1, in.good(1, 101), flagLast, preamble+100, pay) },
		"complete, not last":  func(in *inbox) []byte { return update(1, in.good(1, 100), 0, preamble+100, pay) },
		"nothing, not last":   func(in *inbox) []byte { return update(1, in.good(1, 100), 0, preamble, nil) },
		"empty with payload":  func(in *inbox) []byte { return update(1, in.good(1, 100), flagLast|flagEmpty, preamble+100, pay) },
		"a gap":               func(in *inbox) []byte { return update(1, in.good(2, 100), flagLast, preamble+100, pay) },
		"again":               func(in *inbox) []byte { return update(1, in.good(0, 100), flagLast, preamble+100, pay) },
		"another generation": func(in *inbox) []byte {
			h := in.good(1, 100)
			h.Generation++
			return update(1, h, flagLast, preamble+100, pay)
		},
		"another member": func(in *inbox) []byte {
			h := in.good(1, 100)
			h.Member++
			return update(1, h, flagLast, preamble+100, pay)
		},
		"another format": func(in *inbox) []byte {
			h := in.good(1, 100)
			h.Format++
			return update(1, h, flagLast, preamble+100, pay)
		},
		"no header": func(in *inbox) []byte {
			b := update(1, in.good(1, 100), flagLast, preamble+100, pay)
			b[frameBytes]++
			return b
		},
		"a part of nothing": func(*inbox) []byte {
			return append(appendFrame(nil, more, flagLast, 1, 0)[:4], 1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 5)
		},
		"given up, not last": func(in *inbox) []byte {
			return appendFrame(update(1, in.good(1, 200), 0, preamble+100, make([]byte, 100)), more, flagEmpty, 1, 0)
		},
		"given up, of nothing": func(*inbox) []byte { return appendFrame(nil, more, flagLast|flagEmpty, 1, 0) },
		"no part": func(in *inbox) []byte {
			return appendFrame(update(1, in.good(1, 200), 0, preamble+100, make([]byte, 100)), more, 0, 1, 0)
		},
		"in a room without a card": func(in *inbox) []byte {
			return update(1, in.good(1, 100), flagLast|flagPlaced, preamble+inRoom, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		},
		"in a room and beside it": func(in *inbox) []byte {
			return update(1, in.good(1, 100), flagLast|flagPlaced, preamble+100, pay)
		},
		"a room without a number":  func(*inbox) []byte { return appendFrame(nil, grants, 0, 1, 0, 0, 0, 0, 0, 0, 100) },
		"a provider beyond itself": func(*inbox) []byte { return appendFrame(nil, greets, 0, 0, 1, 1, 0, 0) },
		"a second card": func(*inbox) []byte {
			return appendFrame(appendFrame(nil, greets, 0, 0, 0, 1, 0, 0), greets, 0, 0, 0, 1, 0, 0)
		},
		"two at once":     func(in *inbox) []byte { b := update(1, in.good(1, 200), 0, preamble+100, pay); return append(b, b...) },
		"a box of no end": func(*inbox) []byte { return appendAnnounce(nil, 3, "x", rdma.Spec{Bytes: 1 << 62}, false) },
		"a queue in lock-step": func(*inbox) []byte {
			b := appendAnnounce(nil, 3, "x", rdma.Spec{Mode: rdma.Queue(1)}, false)
			b[1] |= byte(flagLockstep)
			return b
		},
		"a box of no depth": func(*inbox) []byte {
			b := appendAnnounce(nil, 3, "x", rdma.Spec{}, false)
			b[frameBytes+15] = 0xff
			return b
		},
		"a name beyond itself": func(*inbox) []byte {
			b := appendAnnounce(nil, 3, "x", rdma.Spec{}, false)
			b[frameBytes+16] = 9
			return b
		},
	} {
		_, l, in, ends := alone(t)
		err := l.feed(frame(in))
		if !errors.Is(err, rdma.ErrCorrupt) {
			t.Errorf("%s: %v", what, err)
		}
		if u, ok, err := in.Next(); ok || err != nil || in.Published() != 0 {
			t.Errorf("%s: the reader got %+v, %v", what, u, err)
		}
		if c, err := in.Clock(); c != 0 || err != nil {
			t.Errorf("%s: clock %d, %v", what, c, err)
		}
		for i := range in.replica.slots.each {
			if b := in.replica.slots.slot(i); bytes.Contains(b, pay) && what != "two at once" {
				t.Errorf("%s: payload was written", what)
			}
		}
		ends()
	}
}

// The same frames, right.
func TestFramesThatFit(t *testing.T) {
	_, l, in, ends := alone(t)
	defer ends()
	pay := bytes.Repeat([]byte{7}, 100)
	first := update(1, in.good(1, 150), 0, preamble+100, pay)
	rest := append((&header{kind: more, flags: flagLast, id: 1, length: 50}).append(nil), pay[:50]...)
	if err := l.feed(append(first, rest...)); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	u, ok, err := in.Next()
	if err != nil || !ok || len(u.Data) != 150 || u.Seq != 1 {
		t.Errorf("%+v, %v, %v", u, ok, err)
	}
	// An update that is broken off is as if it had not been.
	if err := l.feed(update(1, in.good(2, 150), 0, preamble+100, pay)); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if _, ok, err := in.Next(); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
	// A queue of 2 takes no third before the first is released.
	if err := l.feed(update(1, in.good(2, 100), flagLast, preamble+100, pay)); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	if err := l.feed(update(1, in.good(3, 100), flagLast, preamble+100, pay)); !errors.Is(err, rdma.ErrCorrupt) || !strings.Contains(err.Error(), "released") {
		t.Errorf("a third update: %v", err)
	}
}

// FuzzFrames has an authenticated peer send anything: no panic, no access beyond
// a box, no memory that its numbers alone ask for.
// What one peer announces, in whatever frames, has this rank keep so much and no more.
func TestAnnouncementsAreBounded(t *testing.T) {
	for name, frame := range map[string]func(id uint32) []byte{
		"words": func(id uint32) []byte { return appendFrame(nil, makeWords, 0, id, maxWords) },
		"boxes": func(id uint32) []byte {
			return appendAnnounce(nil, id, "name", rdma.Spec{Bytes: 5, About: strings.Repeat("x", maxName)}, false)
		},
	} {
		_, l, _, ends := alone(t)
		var b []byte
		for id := range uint32(mostKept/maxName + 1) {
			b = append(b, frame(id+2)...)
		}
		if err := l.feed(b); !errors.Is(err, rdma.ErrCorrupt) || !strings.Contains(err.Error(), strconv.Itoa(mostKept)) {
			t.Errorf("%s: %v", name, err)
		}
		if l.kept > mostKept {
			t.Errorf("%s: %d bytes are kept", name, l.kept)
		}
		ends()
	}
}

func FuzzFrames(f *testing.F) {
	_, _, in, ends := alone(f)
	f.Add(update(1, in.good(1, 3), flagLast, preamble+3, []byte("abc")))
	f.Add(appendAnnounce(appendFrame(appendFrame(nil, resume, 0, 0, 0), subscribe, 0, 1, 0, 0, 0), 3, "name", rdma.Spec{Bytes: 5, About: "about"}, false))
	f.Add(appendFrame(append(appendFrame(nil, makeWords, 0, 3, 2), appendFrame(nil, setWords, flagQuiet, 3, 0, 1, 2)...), closed, 0, 1, final, 1, 1))
	f.Add(append((&header{kind: aborted, length: 3}).append(nil), "why"...))
	for k := kind(vote.First); k < kinds; k++ {
		h := header{kind: k, length: limitOf(k).least}
		f.Add(append(h.append(nil), make([]byte, h.length)...))
	}
	ends()
	f.Fuzz(func(t *testing.T, b []byte) {
		r, l, in, ends := alone(t)
		defer ends()
		newTransport(r, r.bells, nil).Survive(&members{job: &vote.Job{Hosts: 2, Of: []int{0, 1}}})
		if err := l.feed(b); err == nil {
			t.Error("landing ended without a reason")
		}
		kept := 0
		for _, p := range l.replicas {
			kept += entryBytes + p.bytes()
		}
		for _, p := range l.remotes {
			kept += entryBytes + p.bytes()
		}
		if kept != l.kept || kept > mostKept {
			t.Errorf("%d bytes are kept of %d, and %d are counted", kept, len(b), l.kept)
		}
		for range 3 {
			u, ok, err := in.Next()
			if err != nil || !ok {
				break
			}
			if len(u.Data) > 1000 {
				t.Errorf("%d bytes", len(u.Data))
			}
			in.Release(u.Seq)
		}
	})
}

// A question that was landed, and whose answer is lost with the connection, is answered
// over the next one.
func TestAnswerIsLost(t *testing.T) {
	_, l, _, ends := alone(t)
	defer ends()
	if err := l.feed(appendFrame(appendFrame(nil, makeWords, 0, 3, 2), ask, 0, 3, 0, 7)); !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	for range 2 {
		s := &session{link: l}
		if err := s.control(); err != nil || !bytes.Contains(s.out, appendFrame(nil, heard, 0, 3, 0, 7)) {
			t.Errorf("% x, %v", s.out, err)
		}
	}
}

// docs/developers/wire.md has every kind of frame with the lengths that are allowed.
func TestWireIsWrittenDown(t *testing.T) {
	text, err := os.ReadFile("../../docs/developers/wire.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := regexp.MustCompile(`(?m)^\| (\d+) \| [a-z]+ \| (?:owner|reader|both|proposer|host|any host|asker) \| .* \| ([\d,]+)(?: … ([\d,]+))? \|$`).FindAllStringSubmatch(string(text), -1)
	if len(rows) != int(kinds)-1 {
		t.Fatalf("%d kinds of frames are written down, there are %d", len(rows), kinds-1)
	}
	number := func(s string) uint32 {
		n, _ := strconv.Atoi(strings.ReplaceAll(s, ",", ""))
		return uint32(n)
	}
	seen := map[string]bool{}
	for _, row := range rows {
		seen[row[1]] = true
		least, most := number(row[2]), number(row[2])
		if row[3] != "" {
			most = number(row[3])
		}
		if l := limitOf(kind(number(row[1]))); l.least != least || l.most != most {
			t.Errorf("%q; expected %d to %d bytes", row[0], l.least, l.most)
		}
	}
	if len(seen) != len(rows) {
		t.Errorf("only %d kinds are among the %d that are written down", len(seen), len(rows))
	}
}

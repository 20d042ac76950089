package remote

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"malt/rdma"
	"malt/rdma/fabric"
	"malt/rdma/fabrictest"
	"malt/rdma/tcp"
	"malt/rdma/wire"
)

// watched is a Wire that reads what its rank sends.
type watched struct {
	wire.Wire
	tb testing.TB

	mu     sync.Mutex
	frames map[kind]int
}

func watch(tb testing.TB, w wire.Wire) *watched {
	return &watched{Wire: w, tb: tb, frames: map[kind]int{}}
}

// count is how many frames of a kind were sent.
func (w *watched) count(k kind) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.frames[k]
}

func (w *watched) Dial(ctx context.Context, peer int, given, apart time.Duration) (wire.Conn, error) {
	c, err := w.Wire.Dial(ctx, peer, given, apart)
	if err != nil {
		return nil, err
	}
	return &watchedConn{Conn: c, w: w, small: map[uint32]bool{}}, nil
}

func (w *watched) Listen(h wire.Host) error {
	offer := h.Offer
	h.Offer = func(rank int, c wire.Conn) { offer(rank, &watchedConn{Conn: c, w: w, small: map[uint32]bool{}}) }
	return w.Wire.Listen(h)
}

func (w *watched) Settle(peer int, c wire.Conn) { w.Wire.Settle(peer, c.(*watchedConn).Conn) }

// watchedConn sees to it that behind the first "after" no update goes by TCP that can go through a ring.
type watchedConn struct {
	wire.Conn
	w     *watched
	small map[uint32]bool // boxes of which updates can
	after bool
	part  []byte // of a frame
}

func (c *watchedConn) Write(a, b []byte) error {
	c.saw(a)
	c.saw(b)
	return c.Conn.Write(a, b)
}

func (c *watchedConn) TryWrite(a, b []byte) int {
	n := c.Conn.TryWrite(a, b)
	c.saw(a[:min(n, len(a))])
	c.saw(b[:max(n-len(a), 0)])
	return n
}

func (c *watchedConn) saw(b []byte) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	for c.part = append(c.part, b...); len(c.part) >= frameBytes; {
		h, err := decodeHeader(c.part)
		if err != nil {
			c.w.tb.Error(err)
		}
		if len(c.part) < frameBytes+int(h.length) {
			return
		}
		body := c.part[frameBytes:][:h.length]
		c.part = c.part[frameBytes+h.length:]
		c.w.frames[h.kind]++
		switch {
		case h.kind == announce:
			c.small[h.id] = number(body, 0) <= recordMost && number(body, 1) == 0 && h.flags&flagPlaced == 0
		case h.kind == after:
			c.after = true
		case h.kind == data && c.after && c.small[h.id]:
			c.w.tb.Errorf("an update of box %d, which is small, goes by TCP", h.id)
		}
	}
}

// ringing waits until small updates to all peers go through rings; false: one cannot.
func ringing(t *Transport) bool {
	for _, l := range t.peers {
		for used := false; !used; runtime.Gosched() {
			if l.off.Load() != nil {
				return false
			}
			s := l.session.Load()
			if s == nil {
				continue
			}
			s.turn.Lock()
			r := s.ring.Load()
			used = r != nil && r.out.said > 0
			s.turn.Unlock()
		}
	}
	return true
}

// A put of 8 bytes costs no frame over TCP, and a credit every 16 puts.
func TestSmallUpdates(t *testing.T) {
	puts := 10_000
	if testing.Short() {
		puts = 500
	}
	var net fabrictest.Net
	for _, c := range []struct {
		name string
		open func() fabric.Carrier // nil: by TCP, which has to fail
	}{
		{"card", func() fabric.Carrier { return net.Open() }},
		{"libfabric", func() fabric.Carrier { return libfabric(t) }},
		{"TCP", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			wires := make([]*watched, 2)
			all := openRanks(t, 2, func(config *config) {
				if c.open != nil {
					config.Fabric, config.lost = c.open(), never
				}
				wires[config.Rank] = watch(t, tcp.New(config.TCP))
				config.wire = wires[config.Rank]
			})
			defer closeAll(t, all)
			ctx, spec := t.Context(), rdma.Spec{Bytes: 8}
			const boxes = 20
			var outs []rdma.Outbox
			var ins []rdma.Inbox
			for box := range boxes {
				out, err := all[0].Publish(ctx, fmt.Sprint(box), spec, []int{1})
				if err != nil {
					t.Fatal(err)
				}
				in, err := all[1].Subscribe(ctx, fmt.Sprint(box), spec, []int{0})
				if err != nil {
					t.Fatal(err)
				}
				outs, ins = append(outs, out), append(ins, in[0])
			}
			if c.open != nil && !ringing(all[0]) {
				t.Fatal("there is no ring")
			}
			updates, credits := wires[0].count(data), wires[1].count(credit)
			for clock := uint64(1); clock <= uint64(puts/boxes); clock++ {
				for _, out := range outs {
					b, err := out.Begin()
					if err != nil {
						t.Fatal(err)
					}
					binary.LittleEndian.PutUint64(b, clock)
					if err := out.Commit(8, rdma.Stamp{Clock: clock}, nil); err != nil {
						t.Fatal(err)
					}
				}
				for _, in := range ins {
					u, ok, err := in.Next()
					for ; !ok && err == nil; u, ok, err = in.Next() {
						runtime.Gosched()
					}
					if err != nil {
						t.Fatal(err)
					}
					if got := number(u.Data, 0); got != clock || u.Clock != clock {
						t.Fatalf("clock %d holds %d; expected %d", u.Clock, got, clock)
					}
					in.Release(u.Seq)
				}
			}
			updates, credits = wires[0].count(data)-updates, wires[1].count(credit)-credits
			placed := all[0].Traffic(1).SentPlaced
			t.Logf("%d puts: %d updates by TCP, %d bytes by RDMA, %d credits", puts, updates, placed, credits)
			if past := updates == 0 && placed == uint64(8*puts); past != (c.open != nil) || credits > puts/16 {
				t.Error("that is wrong")
			}
		})
	}
}

// Where the reader takes nothing, updates wait, and are replaced: its owner does not.
func TestNoCredit(t *testing.T) {
	var net fabrictest.Net
	all := openRanks(t, 2, func(c *config) { c.Fabric, c.lost = net.Open(), never })
	defer closeAll(t, all)
	ctx, spec := t.Context(), rdma.Spec{Bytes: 8}
	out, err := all[0].Publish(ctx, "box", spec, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	ins, err := all[1].Subscribe(ctx, "box", spec, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	if !ringing(all[0]) {
		t.Fatal("there is no ring")
	}
	s := all[1].links[0].session.Load()
	s.in.turn.Lock()
	const puts = 1000
	for n := uint64(1); n <= puts; n++ {
		b, err := out.Begin()
		if err != nil {
			t.Fatal(err)
		}
		binary.LittleEndian.PutUint64(b, n)
		if err := out.Commit(8, rdma.Stamp{Clock: n}, nil); err != nil {
			t.Fatal(err)
		}
	}
	if n := all[0].links[1].session.Load().recorded.Load(); n > records {
		t.Errorf("%d records were posted, though none has landed", n)
	}
	s.in.turn.Unlock()
	s.drain()
	for clock := uint64(0); clock < puts; {
		u, ok, err := ins[0].Next()
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			clock = u.Clock
			ins[0].Release(u.Seq)
		}
		runtime.Gosched()
	}
	if n := all[0].links[1].session.Load().recorded.Load(); n > records+2 {
		t.Errorf("%d records were posted for %d puts", n, puts)
	}
}

// What is no record ends the connection, as over TCP; so do counts that cannot be.
func TestMalformedRecords(t *testing.T) {
	var net fabrictest.Net
	for name, c := range map[string]func(s *session, r *ring) error{
		"no frame": func(s *session, r *ring) error { clear(slotOf(r.to, 1)); return s.landRecord(1) },
		"of a box of no one": func(s *session, r *ring) error {
			return put1(s, r, header{kind: data, flags: flagLast, length: preamble, id: 7})
		},
		"not an update":     func(s *session, r *ring) error { return put1(s, r, header{kind: clock, length: 16}) },
		"not the last part": func(s *session, r *ring) error { return put1(s, r, header{kind: data, length: preamble}) },
		"longer than a slot": func(s *session, r *ring) error {
			return put1(s, r, header{kind: data, flags: flagLast, length: recordBytes})
		},
		"after what cannot be": func(s *session, r *ring) error { return s.landAfter(r.in.next.Load() + records + 1) },
		"fewer have landed":    func(s *session, r *ring) error { return s.landCredit(0) },
		"more have landed": func(s *session, r *ring) error {
			if err := s.landCredit(100); err != nil {
				return fmt.Errorf("too early: %w", err)
			}
			s.turn.Lock()
			defer s.turn.Unlock()
			return s.controlRing(r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			all := openRanks(t, 2, func(c *config) { c.Fabric, c.lost = net.Open(), never })
			defer closeAll(t, all)
			if !ringing(all[0]) || !ringing(all[1]) {
				t.Fatal("there is no ring")
			}
			s := all[0].links[1].session.Load()
			s.in.turn.Lock()
			err := c(s, s.ring.Load())
			s.in.turn.Unlock()
			if !errors.Is(err, rdma.ErrCorrupt) {
				t.Errorf("%v, expected that it is corrupt", err)
			}
		})
	}
}

// put1 lands what the peer has put into slot 1.
func put1(s *session, r *ring, h header) error {
	h.append(slotOf(r.to, 1)[:0])
	return s.landRecord(1)
}

// late is a card that does not say which numbers have arrived, while held.
type late struct {
	fabric.Carrier
	mu   sync.Mutex
	held bool
	kept []fabric.Event
}

func (c *late) Poll(ev []fabric.Event) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.held && len(c.kept) > 0 {
		n := copy(ev, c.kept)
		c.kept = c.kept[n:]
		return n
	}
	n := c.Carrier.Poll(ev)
	if !c.held {
		return n
	}
	left := 0
	for _, e := range ev[:n] {
		if e.Number != 0 && e.Op == nil {
			c.kept = append(c.kept, e)
		} else {
			ev[left] = e
			left++
		}
	}
	return left
}

func (c *late) hold(held bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.held = held
}

// A word that is set after an update is not seen before it, however late the update's number arrives.
func TestWordBehindARecord(t *testing.T) {
	var net fabrictest.Net
	wires := make([]*watched, 2)
	reader := &late{Carrier: net.Open()}
	all := openRanks(t, 2, func(c *config) {
		c.Fabric, c.lost = reader, never
		if c.Rank == 0 {
			c.Fabric = net.Open()
		}
		wires[c.Rank] = watch(t, tcp.New(c.TCP))
		c.wire = wires[c.Rank]
	})
	defer closeAll(t, all)
	ctx, spec := t.Context(), rdma.Spec{Bytes: 8}
	var words [2]rdma.Words
	var made sync.WaitGroup
	for rank, tr := range all {
		made.Go(func() {
			var err error
			if words[rank], err = tr.Words(ctx, "words", 1); err != nil {
				t.Error(err)
			}
		})
	}
	made.Wait()
	out, err := all[0].Publish(ctx, "box", spec, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	ins, err := all[1].Subscribe(ctx, "box", spec, []int{0})
	if err != nil {
		t.Fatal(err)
	}
	if !ringing(all[0]) || !ringing(all[1]) {
		t.Fatal("there is no ring")
	}
	for n := uint64(1); n <= 20; n++ {
		reader.hold(true)
		before := wires[0].count(after)
		if _, err := out.Begin(); err != nil {
			t.Fatal(err)
		}
		if err := out.Commit(8, rdma.Stamp{Clock: n}, nil); err != nil {
			t.Fatal(err)
		}
		words[0].Set(0, n)
		for seen := uint64(0); seen != n; seen, err = words[1].Get(0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if wires[0].count(after) > before {
				reader.hold(false)
			}
			runtime.Gosched()
		}
		u, ok, err := ins[0].Next()
		if !ok || u.Clock != n || err != nil {
			t.Fatalf("word %d is there, and update %d (%t, %v)", n, u.Clock, ok, err)
		}
		ins[0].Release(u.Seq)
	}
}

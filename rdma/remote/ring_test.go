package remote

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/fabric"
	"malt/rdma/internal/mem"
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

// count is how many frames of a kind a rank has sent.
func count(t *Transport, k kind) int {
	w := t.wire.(*watched)
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

// ringing waits until small updates to all peers go through rings; false: some do not.
func ringing(t *Transport) bool {
	for _, l := range t.peers {
		if !l.ringing() {
			return false
		}
	}
	return true
}

func (l *link) ringing() bool {
	end := time.Now().Add(fleet.Patience)
	for used := false; !used; runtime.Gosched() {
		if l.off.Load() != nil || time.Now().After(end) {
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
	return true
}

// openRinging opens two ranks with cards, between which small updates go through rings.
func openRinging(t *testing.T, open func() fabric.Carrier) []*Transport {
	t.Helper()
	all := openPlacing(t, 2, 0, open)
	if !ringing(all[0]) || !ringing(all[1]) {
		closeAll(t, all)
		t.Fatal("there is no ring")
	}
	return all
}

// A put of 8 bytes costs no frame over TCP, and a credit every 16 puts.
func TestSmallUpdates(t *testing.T) {
	puts := 10_000
	if testing.Short() {
		puts = 500
	}
	pastTheConnection(t, func(t *testing.T, open func() fabric.Carrier) {
		all := openPlacing(t, 2, 0, open)
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
		if open != nil && !ringing(all[0]) {
			t.Fatal("there is no ring")
		}
		updates, credits := count(all[0], data), count(all[1], credit)
		for clock := uint64(1); clock <= uint64(puts/boxes); clock++ {
			for _, out := range outs {
				if err := put(all[0], out, 8, clock); err != nil {
					t.Fatal(err)
				}
			}
			for _, in := range ins {
				if err := got(all[1], in, 8, clock); err != nil {
					t.Fatal(err)
				}
			}
		}
		updates, credits = count(all[0], data)-updates, count(all[1], credit)-credits
		placed := all[1].Traffic(0).ReceivedPlaced // what was sent is counted once the card has it, maybe after the reader
		t.Logf("%d puts: %d updates by TCP, %d bytes by RDMA, %d credits", puts, updates, placed, credits)
		if past := updates == 0 && placed == uint64(8*puts); past != (open != nil) || credits > puts/16 {
			t.Error("that is wrong")
		}
	})
}

// Where the reader takes nothing, updates wait, and are replaced: its owner does not.
func TestNoCredit(t *testing.T) {
	all := openRinging(t, inMemory())
	defer closeAll(t, all)
	out, in := pair(t, all, rdma.Spec{Bytes: 8})
	s := all[1].links[0].session.Load()
	s.in.turn.Lock()
	const puts = 1000
	for n := uint64(1); n <= puts; n++ {
		if err := put(all[0], out, 8, n); err != nil {
			t.Fatal(err)
		}
	}
	if n := all[0].links[1].session.Load().recorded.Load(); n > records {
		t.Errorf("%d records were posted, though none has landed", n)
	}
	s.in.turn.Unlock()
	s.drain()
	for clock := uint64(0); clock < puts; {
		u, ok, err := in.Next()
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			clock = u.Clock
			in.Release(u.Seq)
		}
		runtime.Gosched()
	}
	if n := all[0].links[1].session.Load().recorded.Load(); n > records+2 {
		t.Errorf("%d records were posted for %d puts", n, puts)
	}
}

// The end of a write wakes the sender if a record has to wait for its slot, and else does not.
func TestRecordThatWaitsForTheEndOfAWrite(t *testing.T) {
	c, err := newCard(inMemory()(), 2)
	if err != nil {
		t.Fatal(err)
	}
	go c.run()
	defer c.close()
	l := newLink(&rank{card: c}, 1)
	defer l.quit()
	r := c.ring(&session{link: l})
	w := &r.writes[0]
	for _, waits := range []bool{false, true} {
		w.done.Store(false)
		c.mu.Lock()
		c.writes[&w.Op] = w
		c.mu.Unlock()
		if waits && !r.full() {
			t.Error("a slot is free while the card writes from it")
		}
		c.tell(&fabric.Event{Op: &w.Op})
		if woken := l.dirty.Swap(false); woken != waits || r.full() {
			t.Errorf("a record waits: %v; the sender was woken: %v; full: %v", waits, woken, r.full())
		}
	}
	c.mu.Lock()
	c.writes[&w.Op] = w
	c.mu.Unlock()
	c.tell(&fabric.Event{Op: &w.Op, Err: errors.New("broken on purpose")})
	if l.off.Load() == nil || !l.dirty.Swap(false) {
		t.Error("a write has failed, and the pair goes on")
	}
}

// Only a record that may be under way arrives: any other number would hide one that is here.
func TestNumbersOfRecords(t *testing.T) {
	for _, c := range []struct {
		next   uint64
		number uint16
		ok     bool
	}{
		{40, 39, false}, {40, 40, true}, {40, 40 + records - 1, true}, {40, 40 + records, false},
		{1<<16 - 1, 1<<16 - 2, false}, {1<<16 - 1, 1<<16 - 1, true}, {1<<16 - 1, 0, true}, {1 << 16, records, false},
	} {
		words := mem.Heap(8*(records+1), 64)
		in := incoming{slots: records, here: words, next: mem.WordAt(words, 8*records)}
		in.next.Store(c.next)
		if ok := in.arrive(c.number); ok != c.ok {
			t.Errorf("number %d, with record %d next: %v", c.number, c.next, ok)
		}
		if next := uint16(c.next) == c.number; in.ready() != next {
			t.Errorf("number %d, with record %d next: ready is %v", c.number, c.next, in.ready())
		}
	}
}

// What is no record ends the connection, as over TCP; so do counts that cannot be.
func TestMalformedRecords(t *testing.T) {
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
			all := openRinging(t, inMemory())
			defer closeAll(t, all)
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
	open := inMemory()
	var reader *late // the last rank's
	all := openRinging(t, func() fabric.Carrier {
		reader = &late{Carrier: open()}
		return reader
	})
	defer closeAll(t, all)
	words := wordsOf(t, all, 1)
	out, in := pair(t, all, rdma.Spec{Bytes: 8})
	for n := uint64(1); n <= 20; n++ {
		reader.hold(true)
		before := count(all[0], after)
		if err := put(all[0], out, 8, n); err != nil {
			t.Fatal(err)
		}
		words[0].Set(0, n)
		for seen, err := words[1].Get(0, 0); seen != n; seen, err = words[1].Get(0, 0) {
			if err != nil {
				t.Fatal(err)
			}
			if count(all[0], after) > before {
				reader.hold(false)
			}
			runtime.Gosched()
		}
		u, ok, err := in.Next()
		if !ok || u.Clock != n || err != nil {
			t.Fatalf("word %d is there, and update %d (%t, %v)", n, u.Clock, ok, err)
		}
		in.Release(u.Seq)
	}
}

// A process that was stopped for longer than a payload may take finds it if it has come meanwhile, or comes soon.
func TestStoppedWhileAPayloadArrives(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const lost = time.Second
		l := newLink(&rank{cfg: Config{lost: lost}}, 1)
		defer l.quit()
		looked := false
		var arrived atomic.Bool
		here := func() bool {
			if !looked {
				looked = true
				time.Sleep(time.Minute)
				time.AfterFunc(lost/2, func() {
					arrived.Store(true)
					l.news <- struct{}{}
				})
			}
			return arrived.Load()
		}
		if err := l.brought(here, "a payload"); err != nil {
			t.Error(err)
		}
		began := time.Now()
		if err := l.brought(func() bool { return false }, "a payload"); err == nil || l.off.Load() == nil || time.Since(began) != lost {
			t.Errorf("%v, after %v", err, time.Since(began))
		}
	})
}

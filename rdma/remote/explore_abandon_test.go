//go:build explore

package remote

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"malt/internal/explore"
	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/fabric"
	"malt/rdma/fabrictest"
	"malt/rdma/internal/mem"
	"malt/rdma/wire"
)

// abandonCase is two ranks with the sessions, links and cards that they have in a job. Their connection may end at
// any moment, with any of what is on its way over it; both abandon their sessions and begin others. Their cards go on to
// write what had begun. Threads:
//
//	writer    commits updates, and closes its end
//	owner     polls its card, lands what comes, and sends
//	reader    does the same
//	consumer  reads what has landed, and closes its end
//	cards     do a write that has begun, of any that has
//	cable     is killed, and with it the connection
//
// A step is a whole call; what happens within one is for the other cases.
type abandonCase struct {
	spec    rdma.Spec
	from    int // bytes from which on an update has a room; smaller ones go through the ring
	updates uint64
	begins  bool   // the connection may end before the cards are a pair
	ahead   uint64 // so many updates may be there that have not landed
	reads   uint64 // after which the consumer closes its end
	away    bool   // the consumer is, at first, and the writer excuses it
	early   bool   // a write may have completed, and its bytes arrive later
	holds   bool   // the connection does not end
	lost    bool   // the first write never ends, and its bytes never arrive
	silent  bool   // it never ends, and its bytes arrive
	looks   int    // at the writes, before each ends
	stopped bool   // the reader is, until then
}

// exploredLate is Config.late.
const exploredLate = 2

// stream is what is under way over a connection in one direction.
type stream struct{ b []byte }

// cable is one end of a connection in memory.
type cable struct {
	wire.Conn
	out, in *stream
	cut     *bool
}

func connectCables() (a, b *cable) {
	x, y, cut := &stream{}, &stream{}, new(bool)
	return &cable{out: x, in: y, cut: cut}, &cable{out: y, in: x, cut: cut}
}

func (c *cable) Write(a, b []byte) error {
	if *c.cut {
		return syscall.EPIPE
	}
	c.out.b = slices.Concat(c.out.b, a, b)
	return nil
}

func (c *cable) TryWrite(a, b []byte) int {
	if c.Write(a, b) != nil {
		return 0
	}
	return len(a) + len(b)
}

func (c *cable) TryRead(b []byte) (int, error) {
	n := copy(b, c.in.b)
	c.in.b = c.in.b[n:]
	if n == 0 && *c.cut {
		return 0, syscall.ECONNRESET
	}
	return n, nil
}

func (c *cable) Read(b []byte) (int, error) {
	n, err := c.TryRead(b)
	if n == 0 && err == nil {
		err = errors.New("a read that would wait")
	}
	return n, err
}

func (c *cable) Close() error                     { *c.cut = true; return nil }
func (c *cable) Inline() bool                     { return true }
func (c *cable) State() (s mem.Socket, ok bool)   { return s, false }
func (c *cable) Carried() (sent, received uint64) { return 0, 0 }
func (c *cable) SetReadDeadline(time.Time) error  { return nil }

// noWire lets nobody in.
type noWire struct{ wire.Wire }

func (noWire) Listen(wire.Host) error { return nil }
func (noWire) Addresses(int) []string { return []string{"there"} }
func (noWire) Settle(int, wire.Conn)  {}

// looking is a doorbell, at which the consumer looks when it is rung.
type looking struct{ look func() (rdma.Update, error) }

func (*looking) BellID() uint64                          { return 1 }
func (*looking) Wait(context.Context, func() bool) error { return nil }
func (l *looking) Wake()                                 { l.RingBells() }
func (l *looking) RingBell(uint64)                       { l.RingBells() }
func (l *looking) RingBells() {
	if l.look != nil {
		_, _ = l.look()
	}
}

// slow is a card that does its writes later, and may say before that they have completed.
type slow struct {
	*fabrictest.Card
	memory map[fabric.Region]mem.Pinned
	begun  []*fabric.Op
	told   []fabric.Event
	apart  fabric.Region // has what is still to be written of a write that has completed

	sticks, silent bool       // the next write never ends; its bytes arrive all the same
	stuck          *fabric.Op // that one
}

func (c *slow) Register(m mem.Pinned, a fabric.Access) (fabric.Region, error) {
	r, err := c.Card.Register(m, a)
	c.memory[r] = m
	return r, err
}

func (c *slow) Write(op *fabric.Op) error {
	if c.sticks {
		c.stuck, c.sticks = op, false
		if !c.silent {
			return nil
		}
	}
	c.begun = append(c.begun, op)
	return nil
}

func (c *slow) Poll(ev []fabric.Event) int {
	n := copy(ev, c.told)
	c.told = c.told[n:]
	n += c.Card.Poll(ev[n:])
	if c.stuck != nil {
		n = len(slices.DeleteFunc(ev[:n], func(e fabric.Event) bool { return e.Op == c.stuck }))
	}
	return n
}

// whole is a write that has begun and not completed; -1: there is none.
func (c *slow) whole() int {
	return slices.IndexFunc(c.begun, func(op *fabric.Op) bool { return op.From != c.apart })
}

// complete says that a write which has begun has completed.
func (c *slow) complete(n int) {
	op := c.begun[n]
	rest := *op
	rest.From, rest.At = c.apart, 0
	for slices.ContainsFunc(c.begun, func(o *fabric.Op) bool { return o.From == c.apart && o.At == rest.At }) {
		rest.At += recordBytes
	}
	copy(c.memory[c.apart].Bytes()[rest.At:], c.memory[op.From].Bytes()[op.At:][:op.Bytes])
	c.begun = slices.Clone(c.begun)
	c.begun[n], c.told = &rest, append(c.told, fabric.Event{Op: op})
}

// side is one of the two ranks.
type side struct {
	t    *Transport
	l    *link
	s    *session
	card *slow
	news bool // the card has something to tell

	apart mem.Pinned // of the card

	cables []*cable // the one in use comes first
	waits  bool     // a round does
	mute   bool     // the sending goroutine has ended
	ending int      // how far the end of the session is
}

func newSide(rank, from int, net *fabrictest.Net) *side {
	w := &side{card: &slow{Card: net.Open(), memory: map[fabric.Region]mem.Pinned{}}}
	card, err := newCard(w.card, 2)
	if err != nil {
		panic(err)
	}
	if w.apart, err = mem.NewPinned(4 * recordBytes); err != nil {
		panic(err)
	}
	if w.card.apart, err = w.card.Register(w.apart, fabric.Source); err != nil {
		panic(err)
	}
	r, err := newRank(Config{Rank: rank, Size: 2, Generation: 1, PlaceFrom: from, Bell: &looking{}, late: exploredLate}, noWire{})
	if err != nil {
		panic(err)
	}
	r.card = card
	r.later.stop() // a moment passes when a thread says so
	w.t, w.l = newTransport(r, r.bells, nil), r.links[1-rank]
	return w
}

// connect begins the next session.
func (w *side) connect() {
	w.s = w.l.newSession(newConn(w.cables[0]))
	w.l.kick()
}

// next is what the goroutines of a rank have to do now; nil: nothing.
func (w *side) next() func() {
	in, c := w.s.in, w.cables[0]
	switch {
	case w.news:
		return w.poll
	case in.failed == nil && (len(c.in.b) > 0 || *c.cut):
		return w.land
	case !w.mute && w.l.dirty.Load():
		return w.send
	case in.failed != nil:
		return w.end
	}
	return nil
}

func (w *side) poll() {
	w.news = false
	for w.t.card.poll() {
	}
	if w.s.in.behind { // its goroutine waits for that
		w.land()
	}
}

func (w *side) land() {
	in := w.s.in
	in.turn.Lock()
	more := true
	for in.failed == nil && more {
		more = in.readSome()
		_ = w.s.landWhole()
	}
	in.turn.Unlock()
	w.s.drain()
}

// send is a round, up to where that waits.
func (w *side) send() {
	s := w.s
	w.l.dirty.Store(false)
	if !w.waits {
		s.turn.Lock()
	}
	var err error
	if w.waits, err = s.round(); !w.waits {
		s.turn.Unlock()
	}
	if err != nil {
		w.mute = true
		w.cables[0].Close()
	}
}

// end is the next step of the end of a session.
func (w *side) end() {
	s := w.s
	switch w.ending++; w.ending {
	case 1:
		w.cables[0].Close()
		s.in.turn.Lock()
		s.in.over = true
		w.l.dropUpdates()
		s.in.turn.Unlock()
	case 2:
		if !w.waits {
			s.turn.Lock()
		}
		w.waits, w.mute, s.ended = false, true, true
		for _, x := range s.relays {
			x.finish()
		}
		s.turn.Unlock()
	default:
		s.abandon()
		w.l.session.Store(nil)
		w.ending, w.mute, w.cables = 0, false, w.cables[1:]
		w.connect()
	}
}

// abandoned are two ranks, connected, of which the second subscribes to a box of the first.
type abandoned struct {
	sides [2]*side
	out   *outbox
	in    *inbox

	looks int // at the write that is under way

	// What the consumer saw when it last looked: when it was woken, or before it waited.
	next           uint64
	returned, left bool
}

func (c abandonCase) begin() *abandoned {
	var net fabrictest.Net
	a := &abandoned{}
	for i := range a.sides {
		a.sides[i] = newSide(i, c.from, &net)
	}
	for range 2 {
		x, y := connectCables()
		a.sides[0].cables, a.sides[1].cables = append(a.sides[0].cables, x), append(a.sides[1].cables, y)
	}
	a.sides[0].connect()
	a.sides[1].connect()
	out, err := a.sides[0].t.Publish(context.Background(), "box", c.spec, []int{1})
	if err != nil {
		panic(err)
	}
	a.out = out.(*outbox)
	reader := a.sides[1].t
	for missing := []int{0}; len(missing) > 0 || !c.begins; {
		moved := a.write(0, 0) || a.write(1, 0)
		for _, w := range a.sides {
			if do := w.next(); do != nil {
				do()
				moved = true
			}
		}
		if a.in == nil {
			reader.mu.Lock()
			var found []*replica
			if found, missing, err = reader.find("", "box", c.spec, []int{0}); err == nil && len(missing) == 0 {
				var ins []rdma.Inbox
				if ins, err = reader.makeInboxes(found); err == nil {
					a.in = ins[0].(*inbox)
				}
			}
			reader.mu.Unlock()
			if err != nil {
				panic(err)
			}
		} else if !moved {
			break
		}
	}
	return a
}

// write has a card do a write that has begun.
func (a *abandoned) write(side, n int) bool {
	c := a.sides[side].card
	if n >= len(c.begun) {
		return false
	}
	op := c.begun[n]
	c.begun = slices.Delete(slices.Clone(c.begun), n, n+1)
	if err := c.Card.Write(op); err != nil {
		panic(err)
	}
	a.looks = 0
	a.sides[0].news, a.sides[1].news = true, true
	return true
}

// look is the consumer's. It returns the next update that has landed, which may be one that nobody will read.
func (a *abandoned) look() (u rdma.Update, err error) {
	if a.in == nil || a.in.Closed {
		return u, nil
	}
	e := a.in.replica.end
	e.Control = slices.Clone(e.Control)
	in, err := box.NewInbox(e, 0)
	if err == nil {
		u, _, err = in.Next()
	}
	_, end := in.Clock()
	a.next, a.returned, a.left = u.Seq, a.in.Returned(), end != nil
	return u, err
}

func unTorn(t *explore.Thread, u rdma.Update) {
	if a, b := mem.WordAt(u.Data, 0).Load(), mem.WordAt(u.Data, 8).Load(); a != u.Seq || b != u.Seq {
		t.Fail("torn: update %d holds %d and %d", u.Seq, a, b)
	}
}

// free gives back memory that a search which has turned back has left.
func (a *abandoned) free() {
	_ = a.out.pub.memory.free()
	_ = a.in.replica.slots.free()
	for _, w := range a.sides {
		_ = w.apart.Unmap()
		go w.t.card.run()
		w.t.card.close()
	}
}

func (c abandonCase) setup() func(x *explore.Exec) {
	var before *abandoned
	return func(x *explore.Exec) {
		if before != nil {
			before.free()
		}
		a := c.begin()
		before = a
		owner, reader := a.sides[0], a.sides[1]
		owner.card.sticks, owner.card.silent = c.lost || c.silent, c.silent
		now := x.Memory(8)
		// stepped is the end of a step of t: what the ranks have is the state.
		stepped := func(t *explore.Thread) {
			if !t.Replaying() {
				binary.LittleEndian.PutUint64(now, digest(a))
			}
		}
		landed := func() uint64 { return a.in.replica.box.Landed() }
		reader.t.bell.(*looking).look = a.look
		// away is what the writer knows.
		away := func() bool { return c.away && a.out.pub.relays[0].answer.Load().demand == 0 }
		// The connection ends when cable is killed, before anybody else goes on.
		whole := false // that has come about
		cable := x.Go("cable", func(t *explore.Thread) { t.Await(func() bool { return false }) }).Endless()
		await := func(t *explore.Thread, cond func() bool) {
			t.Await(func() bool { return (whole || !cable.Dead()) && cond() })
		}
		underWay := func() bool { return len(owner.t.card.writes) > 0 }
		looked := func() bool {
			return !underWay() || owner.card.stuck != nil || a.looks == c.looks && !owner.l.dirty.Load()
		}
		stops := func(w *side) bool { return c.stopped && w == reader && !looked() }

		x.Go("writer", func(t *explore.Thread) {
			for n := uint64(1); n <= c.updates; n++ {
				t.At("write", n)
				under := n > 1 && (c.away || c.ahead > 2) && t.Choose(2) == 1 // while the last is under way, or has landed
				await(t, func() bool {
					return c.away && !under || landed()+c.ahead >= n && !under || a.in.Closed || under && (len(owner.card.begun) > 0 || landed()+1 >= n)
				})
				b, err := a.out.Begin()
				for ; b == nil && err == nil; b, err = a.out.Begin() {
					stepped(t)
					t.At("full", n)
					await(t, func() bool { return away() || a.out.Acked(1)+uint64(c.spec.Mode.Depth()) >= n })
					if away() {
						t.At("excuse", n)
						await(t, func() bool { return true })
						a.out.Excuse(1)
					}
				}
				if err != nil {
					t.Fail("%v", err)
				}
				mem.WordAt(b, 0).Store(n)
				mem.WordAt(b, 8).Store(n)
				if err := a.out.Commit(exploredBytes, rdma.Stamp{Clock: n}, nil); err != nil {
					t.Fail("%v", err)
				}
				stepped(t)
			}
			t.At("close")
			await(t, func() bool { return true })
			if err := a.out.Close(); err != nil {
				t.Fail("%v", err)
			}
			stepped(t)
		}).Immune()

		for i, name := range []string{"owner", "reader"} {
			w := a.sides[i]
			x.Go(name, func(t *explore.Thread) {
				for {
					t.At("rank")
					await(t, func() bool { return w.next() != nil && !stops(w) })
					w.next()()
					if err := w.s.in.failed; errors.Is(err, rdma.ErrCorrupt) {
						t.Fail("%v", err)
					}
					next, returned, left := a.next, a.returned, a.left
					if u, err := a.look(); err != nil {
						t.Fail("%v", err)
					} else if u.Data != nil {
						unTorn(t, u)
					}
					a.next, a.returned, a.left = next, returned, left
					stepped(t)
				}
			}).Daemon()
		}

		x.Go("consumer", func(t *explore.Thread) {
			seen := uint64(0)
			if c.away {
				await(t, func() bool { return true })
				a.in.Return()
				stepped(t)
				_, _ = a.look()
				t.At("return")
				await(t, func() bool { return a.returned })
				seen = a.in.replica.box.Acked()
			}
			for seen < c.reads {
				_, _ = a.look()
				t.At("read", seen)
				await(t, func() bool { return a.next > seen || a.left && c.away })
				if a.next <= seen { // while it was away
					break
				}
				u, ok, err := a.in.next()
				p := a.in.replica
				excused := p.met.Load() < p.demanded.Load() // and not told of it any more
				if err != nil || !ok || u.Seq <= seen || c.spec.Mode.Depth() > 0 && (u.Seq != seen+1 || u.Data == nil && !excused) {
					t.Fail("update %d, %v, %v, after %d", u.Seq, ok, err, seen)
				}
				stepped(t)
				t.At("hold", u.Seq)
				await(t, func() bool { return true })
				if u.Data != nil {
					unTorn(t, u)
				}
				seen = u.Seq
				a.in.Inbox.Release(seen)
				reader.l.kick() // a moment later
				stepped(t)
			}
			t.At("leave")
			await(t, func() bool { return true })
			if err := a.in.Close(); err != nil {
				t.Fail("%v", err)
			}
			stepped(t)
		}).Immune()

		x.Go("cards", func(t *explore.Thread) {
			for {
				t.At("card")
				await(t, func() bool { return len(owner.card.begun)+len(reader.card.begun) > 0 && (c.looks == 0 || looked()) })
				n := 0
				if all := len(owner.card.begun) + len(reader.card.begun); all > 1 {
					n = t.Choose(all)
				}
				if !a.write(0, n) {
					a.write(1, n-len(owner.card.begun))
				}
				stepped(t)
			}
		}).Daemon()

		if c.early {
			x.Go("early", func(t *explore.Thread) {
				for {
					t.At("early")
					await(t, func() bool { return owner.card.whole() >= 0 })
					owner.card.complete(owner.card.whole())
					owner.news = true
					stepped(t)
				}
			}).Daemon()
		}

		if c.looks > 0 {
			x.Go("looks", func(t *explore.Thread) {
				for {
					t.At("look")
					await(t, func() bool {
						return underWay() && a.looks < c.looks && owner.next() == nil && (stops(reader) || reader.next() == nil)
					})
					a.looks++
					owner.l.tend()
					stepped(t)
				}
			}).Daemon()
		}

		x.Go("ends", func(t *explore.Thread) {
			t.At("end")
			t.Await(cable.Dead)
			c := owner.cables[0]
			if part := t.Choose(3); part > 0 {
				c.out.b, c.in.b = c.out.b[:len(c.out.b)/2*(2-part)], c.in.b[:len(c.in.b)/2*(2-part)]
			}
			*c.cut, whole = true, true
			stepped(t)
		}).Daemon()

		x.Final(func(report func(format string, args ...any)) {
			p := a.in.replica
			if len(owner.l.relays) > 0 || len(reader.l.replicas) > 0 {
				report("a box is not forgotten")
			}
			if lack := owner.t.Lacks(); c.looks > 0 && (lack != nil) != (owner.card.stuck != nil) {
				report("a write that ends is late, or one that does not is not: %+v", lack)
			}
			if w := owner.t.card.writes[owner.card.stuck]; w != nil {
				delete(owner.t.card.writes, owner.card.stuck)
				if w.back != nil { // as at the end of the card
					_ = w.back()
				}
			}
			if a.out.pub.users != 0 || p.users != 0 {
				report("memory is not given back: %d users of the box, %d of its copy", a.out.pub.users, p.users)
			}
			for _, w := range a.sides {
				if n, m := len(w.t.card.numbers), len(w.t.card.writes); n > 0 || m > 0 {
					report("%d numbers are out, %d writes are under way", n, m)
				}
			}
		})
	}
}

// digest is a number that stands for all that is left of two ranks' past.
func digest(a *abandoned) uint64 {
	d := digester{seen: map[unsafe.Pointer]uint64{}}
	d.h.SetSeed(digestSeed)
	d.walk(reflect.ValueOf(a))
	return d.h.Sum64()
}

var digestSeed = maphash.MakeSeed()

// digester walks through structures, whatever they are, once through each.
type digester struct {
	h    maphash.Hash
	seen map[unsafe.Pointer]uint64
}

// bygone are fields that only count, or may hold what nobody uses any more.
var bygone = map[string]bool{
	"remote.link.sentPlaced": true, "remote.link.receivedPlaced": true, "remote.inbox.vain": true, "remote.input.buf": true, "remote.input.from": true, "remote.input.to": true,
	"remote.session.posted": true, "remote.session.recorded": true, "remote.session.landed": true,
	"box.Writer.busy": true, "box.Writer.look": true, "box.Writer.payload": true, "box.Reader.payload": true, "box.End.Meter": true, "fabric.Op.From": true, "remote.rank.meter": true,
}

// parts is what there is to walk of a structure.
type parts struct {
	fields  []int
	pointed reflect.Type // of an atomic.Pointer
}

var knownParts = map[reflect.Type]*parts{}

func partsOf(t reflect.Type) *parts {
	if known := knownParts[t]; known != nil {
		return known
	}
	p := &parts{}
	knownParts[t] = p
	if load, ok := reflect.PointerTo(t).MethodByName("Load"); ok && strings.HasPrefix(t.Name(), "Pointer[") {
		p.pointed = load.Type.Out(0)
	}
	if path := t.PkgPath(); path == "sync" || path == "time" || path == "context" {
		return p
	}
	for i := range t.NumField() {
		if !bygone[t.String()+"."+t.Field(i).Name] {
			p.fields = append(p.fields, i)
		}
	}
	return p
}

func (d *digester) put(n uint64) { maphash.WriteComparable(&d.h, n) }

func (d *digester) walk(v reflect.Value) {
	switch t := v.Type(); v.Kind() {
	case reflect.Bool:
		d.h.WriteString(strconv.FormatBool(v.Bool()))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		d.put(uint64(v.Int()))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		d.put(v.Uint())
	case reflect.String:
		d.h.WriteString(v.String())
	case reflect.Interface, reflect.Pointer:
		if v.IsNil() {
			d.put(0)
			return
		}
		if v.Kind() == reflect.Pointer {
			n, again := d.seen[v.UnsafePointer()]
			if again {
				d.put(n)
				return
			}
			d.seen[v.UnsafePointer()] = uint64(len(d.seen)) + 1
		}
		d.walk(v.Elem())
	case reflect.Slice, reflect.Array:
		d.put(uint64(v.Len()))
		if v.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8 {
			for page := range slices.Chunk(v.Bytes(), recordBytes) { // of long memory no more is used here
				d.put(maphash.Bytes(digestSeed, page[:min(len(page), 256)]))
			}
			return
		}
		for i := range v.Len() {
			d.walk(v.Index(i))
		}
	case reflect.Map:
		d.put(uint64(v.Len()))
		if k := t.Key().Kind(); k == reflect.Uint32 || k == reflect.Uint64 {
			keys := v.MapKeys()
			slices.SortFunc(keys, func(a, b reflect.Value) int { return cmp.Compare(a.Uint(), b.Uint()) })
			for _, key := range keys {
				d.put(key.Uint())
				d.walk(v.MapIndex(key))
			}
		}
	case reflect.Struct:
		part := partsOf(t)
		if part.pointed != nil && v.CanAddr() {
			d.walk(reflect.NewAt(part.pointed, v.Addr().UnsafePointer()).Elem())
			return
		}
		for _, i := range part.fields {
			d.walk(v.Field(i))
		}
		if t == reflect.TypeFor[input]() {
			in := (*input)(v.Addr().UnsafePointer())
			d.h.Write(in.buf[in.from:in.to])
		}
	}
}

// Whatever is under way when a connection ends, updates come whole, in order and once over the next one, nothing that
// a card writes later lands in what is read, and all memory is given back.
func TestExploreAbandon(t *testing.T) {
	for _, c := range []struct {
		name string
		abandonCase
	}{
		{"newest", abandonCase{spec: rdma.Spec{Bytes: exploredBytes}, from: 1, updates: 2}},
		{"newest, ahead", abandonCase{spec: rdma.Spec{Bytes: exploredBytes}, from: 1, updates: 3, ahead: 3, reads: 1, holds: true}},
		{"newest, early", abandonCase{spec: rdma.Spec{Bytes: exploredBytes}, from: 1, updates: 2, early: true}},
		{"queue", abandonCase{spec: rdma.Spec{Bytes: exploredBytes, Mode: rdma.Queue(2)}, from: 1, updates: 2}},
		{"away", abandonCase{spec: rdma.Spec{Bytes: exploredBytes, Mode: rdma.Queue(1)}, from: 1, updates: 2, away: true, holds: true}},
		{"ring", abandonCase{spec: rdma.Spec{Bytes: exploredBytes}, updates: 2}},
		{"late", abandonCase{spec: rdma.Spec{Bytes: exploredBytes}, from: 1, updates: 2, lost: true, looks: exploredLate + 2, holds: true}},
		{"late, ring", abandonCase{spec: rdma.Spec{Bytes: exploredBytes}, updates: 2, silent: true, looks: exploredLate + 2, holds: true}},
		{"slow", abandonCase{spec: rdma.Spec{Bytes: exploredBytes}, from: 1, updates: 3, looks: 2, holds: true}},
		{"stopped", abandonCase{spec: rdma.Spec{Bytes: exploredBytes}, from: 1, updates: 1, looks: exploredLate + 3, stopped: true, holds: true}},
		{"at the beginning", abandonCase{spec: rdma.Spec{Bytes: exploredBytes}, updates: 1, begins: true}},
	} {
		c.ahead, c.reads = cmp.Or(c.ahead, 2), cmp.Or(c.reads, c.updates)
		o := explore.Options{Kills: 1, Preemptions: -1}
		if c.holds {
			o = explore.Options{Preemptions: 1}
		}
		t.Run(c.name, func(t *testing.T) {
			explore.Must(t, explore.Check(o, c.setup()))
		})
	}
}

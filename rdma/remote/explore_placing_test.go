//go:build explore

package remote

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"malt/internal/explore"
	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/mem"
)

// placingCase is a box whose updates go past the connection, for one reader. Each process is a few threads:
//
//	writer    commits updates
//	link      sends them: takes a room, has the card write, sends the header, or the update itself
//	card      writes word by word, and tells the reader; it completes before, between or after
//	land      lands what comes over the connection, and offers rooms: at once, or later
//	reader    reads what has landed
//
// The connection may end at any moment, as it does when the card fails; that goes on to write all the same.
// Updates then go by TCP.
type placingCase struct {
	mode    rdma.Mode
	updates int
	turns   bool // the next update comes when the last has landed
	cut     bool // the connection may end
	fails   bool // a write may fail
}

// A payload is two words, of which the card writes one at a time; both are the seq of the update.
const (
	exploredBytes = 16
	exploredWrite = 8
)

// single is the lock of rooms that one thread uses.
type single struct{}

func (single) Lock()   {}
func (single) Unlock() {}

// What goes from one end to the other, in a word: 0 is nothing.
type offerWord struct{ number, landed, seq, at uint64 }

func (o offerWord) word() uint64 { return o.number<<24 | o.landed<<16 | o.seq<<8 | o.at }

func offerOf(w uint64) offerWord { return offerWord{w >> 24, w >> 16 & 255, w >> 8 & 255, w & 255} }

// jobWord is a write of one word: of which slot, into which memory, which half, and the number.
type jobWord struct{ slot, to, half, number uint64 }

func (j jobWord) word() uint64 { return 1<<32 | j.number<<16 | j.slot<<12 | j.to<<4 | j.half }

func jobOf(w uint64) jobWord { return jobWord{w >> 12 & 15, w >> 4 & 255, w & 1, w >> 16 & 255} }

const (
	completed = 1
	failed    = 2
)

func (c placingCase) setup() func(x *explore.Exec) {
	spec := rdma.Spec{Bytes: exploredBytes, Mode: c.mode}
	l, err := box.NewLayout(spec, 1)
	if err != nil {
		panic(err)
	}
	last := uint64(c.updates)
	return func(x *explore.Exec) {
		words := x.Memory(11 * 8)
		word := func(i int) *mem.Word { return mem.WordAt(words, 8*i) }
		// Between the ends: what is on its way, whether the connection has ended, who knows, and how far
		// the replica is.
		offers, frame, first, second, cut, ended, landed := word(0), word(1), word(2), word(3), word(4), word(5), word(6)
		// With the card: what it is to write, how that ended, which numbers have come.
		job, done, arrived := word(7), word(8), word(9)
		again := word(10) // there is another connection

		end := func(place box.Place) box.End {
			return box.End{
				Place: place, Layout: l, Name: "box", Member: 7, Generation: 1, Bell: 1,
				Ring: func(uint64) {}, State: func(int) error { return nil },
			}
		}
		source := box.Place{Control: x.Memory(l.ControlBytes), Slot: l.Flat(x.Memory(l.SlotBytes()))}
		out, err := box.NewOutbox(end(source), []int{1}, nil)
		if err != nil {
			panic(err)
		}
		relay, err := out.NewRelay(end(source), 0)
		if err != nil {
			panic(err)
		}
		// The memory of a slot of the replica can be replaced once; -1: it is still to be made.
		more := l.Flat(x.Memory(2 * l.SlotBytes()))
		where := make([]int, l.Slots)
		for i := range where {
			where[i] = i
		}
		copied := box.Place{Control: x.Memory(l.ControlBytes), Slot: func(i int) []byte {
			if where[i] < 0 {
				return nil
			}
			return more(where[i])
		}}
		replica, err := box.NewReplica(end(copied), func(slot, _, _ int) error {
			if where[slot] < 0 {
				where[slot] = l.Slots + slot
			}
			return nil
		})
		if err != nil {
			panic(err)
		}
		in, err := box.NewInbox(end(copied), 0)
		if err != nil {
			panic(err)
		}
		r := &rooms{lock: single{}, box: replica}
		lost := func(slot int) { where[slot] = -1 }

		x.Names(func(name func([]byte, string)) {
			for i, s := range []string{"offers", "frame", "first", "second", "cut", "ended", "landed", "job", "done", "arrived", "again"} {
				name(words[8*i:], s)
			}
			l.Names(source.Control, source.Slot, "box: ", name)
			l.Names(copied.Control, func(i int) []byte { return more(i) }, "replica: ", name)
		})
		noise := []string{"busy", "look", "payload", "backed"}
		writes := explore.Ignore{State: relay, Fields: noise}

		x.Go("writer", func(t *explore.Thread) {
			for n := uint64(1); n <= last; n++ {
				t.At("write", explore.Ignore{State: out, Fields: noise}, n)
				switch d := uint64(c.mode.Depth()); {
				case c.mode == rdma.ByClock: // one step ahead of the reader
					t.Await(func() bool { return landed.Load()+2 >= n })
				case c.turns:
					t.Await(func() bool { return landed.Load()+1 >= n })
				case d > 0:
					t.Await(func() bool { return out.Acked(1)+d >= n })
				}
				b, err := out.Begin()
				if err != nil || b == nil {
					t.Fail("Begin: %v, %v", b, err)
				}
				mem.WordAt(b, 0).Store(n)
				mem.WordAt(b, 8).Store(n)
				if err := out.Commit(exploredBytes, rdma.Stamp{Clock: n}, nil); err != nil {
					t.Fail("%v", err)
				}
			}
		})

		x.Go("link", func(t *explore.Thread) {
			var (
				p      placing
				into   placement
				w      *write
				h      box.Header
				b      []byte
				busy   bool
				known  uint64 // the last offer
				number uint64
			)
			up := true
			broken := func() bool { return up && cut.Load() != 0 }
			for {
				t.At("send", writes, p, into.room, into.at, into.write != nil && into.write.done.Load(), h.Seq, busy, known, up)
				if broken() {
					relay.Done()
					busy, up, p, into = false, false, placing{}, placement{}
					t.Await(func() bool { return ended.Load() != 0 || landed.Load() == last })
					frame.Store(0) // what was on its way is lost
					if err := relay.Resume(landed.Load()); err != nil {
						t.Fail("%v", err)
					}
					again.Store(1)
					continue
				}
				if o := offers.Load(); up && o != known {
					known = o
					f := offerOf(o)
					if err := p.grant(room{number: uint32(f.number), landed: f.landed, seq: f.seq, bytes: exploredBytes, address: f.at}); err != nil {
						t.Fail("%v", err)
					}
				}
				acked := replica.Acked()
				if c.mode.Depth() > 0 {
					relay.Ack(acked)
				}
				if !busy {
					ready := func() bool { return relay.Ready() && !p.waits() || up && offers.Load() != known || broken() }
					if relay.Sent() >= last {
						if landed.Load() == last {
							return
						}
						t.Await(func() bool { return landed.Load() == last || broken() })
						continue
					}
					if !relay.Ready() || p.waits() {
						t.Await(func() bool { return ready() || c.mode.Depth() > 0 && replica.Acked() != acked })
						continue
					}
					var ok, mine bool
					var err error
					h, b, mine, ok, err = relay.Next()
					if !ok || !mine || err != nil {
						t.Fail("Next: %v, %v, %v", ok, mine, err)
					}
					busy, into = true, placement{}
					if room, ok := p.take(&h, true, 1); ok {
						into = placement{room: room, size: exploredBytes}
					}
				}
				if into.number != 0 {
					if w != nil && done.Load() != 0 {
						if done.Load() == failed {
							w.err = errors.New("failed")
						}
						done.Store(0)
						w.done.Store(true)
						w = nil
					}
					begun := false
					whole, err := into.next(exploredWrite, func(at, n int, last uint32) (*write, error) {
						begun, w = true, &write{}
						w.Bytes = n
						slot := uint64(0)
						for i := range l.Slots {
							if &source.Slot(i)[headBytes] == &b[0] {
								slot = uint64(i)
							}
						}
						job.Store(jobWord{slot, into.address, uint64(at / exploredWrite), uint64(last)}.word())
						return w, nil
					})
					if err != nil {
						cut.Store(1)
						continue
					}
					if begun { // and looks again at once, as it may
						continue
					}
					if !whole {
						t.Await(func() bool { return done.Load() != 0 || broken() })
						continue
					}
				}
				t.Await(func() bool { return frame.Load() == 0 || broken() })
				if broken() {
					continue
				}
				number = uint64(into.number)
				if number == 0 {
					first.Store(mem.WordAt(b, 0).Load())
					second.Store(mem.WordAt(b, 8).Load())
				}
				frame.Store(h.Seq<<16 | number<<8 | 1)
				relay.Done()
				busy, into = false, placement{}
			}
		})

		x.Go("card", func(t *explore.Thread) {
			wrong := !c.fails
			for {
				t.At("card", wrong)
				t.Await(func() bool { return job.Load() != 0 || landed.Load() == last })
				word := job.Load()
				if word == 0 {
					return
				}
				j := jobOf(word)
				job.Store(0)
				v := mem.WordAt(source.Slot(int(j.slot)), headBytes+8*int(j.half)).Load()
				how := uint64(completed)
				if !wrong && t.Choose(2) == 1 {
					wrong, how = true, failed
				}
				early := t.Choose(2) == 1
				if early { // what is written from is not needed any more
					done.Store(how)
				}
				mem.WordAt(more(int(j.to)), headBytes+8*int(j.half)).Store(v)
				if !early && t.Choose(2) == 1 {
					early = true
					done.Store(how)
				}
				if j.number != 0 {
					arrived.Or(1 << j.number)
				}
				if !early {
					done.Store(how)
				}
			}
		})

		x.Go("land", func(t *explore.Thread) {
			up, number := true, uint32(1)
			for at := uint64(0); at < last; {
				t.At("land", explore.Ignore{State: replica, Fields: noise}, r.out, r.busy, fmt.Sprint(where), number, up, at)
				acked := replica.Acked()
				if up && r.out.number == 0 && (frame.Load() == 0 && cut.Load() == 0 || t.Choose(2) == 1) {
					o, err := r.offer(func() uint32 { return number })
					if err != nil {
						t.Fail("%v", err)
					}
					if o.number != 0 {
						offers.Store(offerWord{uint64(number), o.landed, o.seq, uint64(where[o.slot])}.word())
						number++
						continue
					}
				}
				t.Await(func() bool {
					return frame.Load() != 0 || up && cut.Load() != 0 || up && c.mode.Depth() > 0 && replica.Acked() != acked
				})
				if up && cut.Load() != 0 && (frame.Load() == 0 || t.Choose(2) == 1) {
					up = false
					r.void(lost)
					ended.Store(1)
					t.Await(func() bool { return again.Load() != 0 })
					continue
				}
				f := frame.Load()
				if f == 0 {
					continue
				}
				seq, from := f>>16, f>>8&255
				if from != 0 {
					t.Await(func() bool { return arrived.Load()>>from&1 != 0 || cut.Load() != 0 })
					if arrived.Load()>>from&1 == 0 {
						frame.Store(0)
						continue
					}
				}
				e := end(copied)
				h := e.Header()
				h.Seq, h.Bytes, h.Stamp = seq, exploredBytes, rdma.Stamp{Clock: seq}
				b, _, err := r.begin(&h, uint32(from))
				if err != nil {
					t.Fail("%v", err)
				}
				if from == 0 {
					mem.WordAt(b, 0).Store(first.Load())
					mem.WordAt(b, 8).Store(second.Load())
				}
				r.commit(&h, true, box.Progress{Clock: seq, Published: seq})
				at = seq
				frame.Store(0)
				landed.Store(seq)
			}
		})

		x.Go("reader", func(t *explore.Thread) {
			for seen := uint64(0); seen < last; {
				t.At("read", explore.Ignore{State: in, Fields: []string{"payload"}}, seen)
				t.Await(func() bool { return landed.Load() > seen })
				u, ok, err := in.Next()
				switch {
				case err != nil:
					t.Fail("%v", err)
				case !ok || u.Seq <= seen || c.mode.Depth() > 0 && u.Seq != seen+1:
					t.Fail("update %d, %v, after %d", u.Seq, ok, seen)
				}
				a, b := mem.WordAt(u.Data, 0).Load(), mem.WordAt(u.Data, 8).Load()
				if a != u.Seq || b != u.Seq {
					t.Fail("torn: update %d holds %d and %d", u.Seq, a, b)
				}
				seen = u.Seq
				in.Release(seen)
			}
		})

		if c.cut {
			x.Go("cut", func(*explore.Thread) { cut.Store(1) })
		}
	}
}

// Updates that go past the connection come whole, in order and once, also those that had to be sent again
// by TCP; and no write that is late lands in a slot that is read.
func TestExplorePlacing(t *testing.T) {
	more := 0
	if os.Getenv("MALT_EXPLORE") == "big" {
		more = 1
	}
	for _, c := range []struct {
		name        string
		preemptions int // all interleavings are too many
		placingCase
	}{
		{"newest", 2, placingCase{mode: rdma.Newest, updates: 2}},
		{"newest, in turn", 1, placingCase{mode: rdma.Newest, updates: 3, turns: true}},
		{"lock-step", 1, placingCase{mode: rdma.ByClock, updates: 3}},
		{"queue", 2, placingCase{mode: rdma.Queue(1), updates: 2}},
		{"newest, cut", 1, placingCase{mode: rdma.Newest, updates: 2, cut: true}},
		{"queue, cut", 1, placingCase{mode: rdma.Queue(1), updates: 2, cut: true}},
		{"newest, a write fails", 1, placingCase{mode: rdma.Newest, updates: 2, fails: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			explore.Must(t, explore.Check(explore.Options{Preemptions: c.preemptions + more}, c.setup()))
		})
	}
}

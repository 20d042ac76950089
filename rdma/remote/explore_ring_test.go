//go:build explore

package remote

import (
	"os"
	"testing"

	"malt/internal/explore"
	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/mem"
)

// ringCase is a box whose updates go through a ring, of two slots. Threads:
//
//	writer  commits updates
//	link    sends them: the first over the connection, and the others as records; with word then a word, behind all
//	card    writes a record word by word, the last one first if there are two, tells the reader, and polls there;
//	        it completes before or after
//	land    lands what comes over the connection
//	credit  says how many records have landed, when it is woken
//	reader  reads what has landed
type ringCase struct {
	mode    rdma.Mode
	updates uint64
	word    bool
	probe   bool // it has still to land
}

// turnWord is input.turn.
type turnWord struct{ *mem.Word }

func (w turnWord) TryLock() bool { return w.CompareAndSwap(0, 1) }
func (w turnWord) Unlock()       { w.Store(0) }

// What a frame holds, in a word: 0 is nothing.
const (
	frameUpdate = 1 + iota
	frameAfter
	frameWord
)

func (c ringCase) setup() func(x *explore.Exec) {
	spec := rdma.Spec{Bytes: exploredBytes, Mode: c.mode}
	l, err := box.NewLayout(spec, 1)
	if err != nil {
		panic(err)
	}
	const slots = 2
	return func(x *explore.Exec) {
		names := []string{"frame", "landed", "credit", "turn", "next", "job 0", "job 1", "completed 0", "completed 1", "taken", "frame", "dirty"}
		words := x.Memory(8 * len(names))
		word := func(i int) *mem.Word { return mem.WordAt(words, 8*i) }
		landed, turn := word(1), turnWord{word(3)}
		frame := func(n int) *mem.Word { return word(n % 2 * 10) }        // two can be on their way
		dirty := word(11)                                                 // link.dirty
		taken := word(9)                                                  // the last update that the link has
		job := func(slot uint64) *mem.Word { return word(5 + int(slot)) } // 1 + the record
		completed := func(slot uint64) *mem.Word { return word(7 + int(slot)) }
		here := x.Memory(8 * slots)
		// A record is its seq and the two words of the payload.
		from, to := x.Memory(24*slots), x.Memory(24*slots)
		at := func(b []byte, n uint64, i int) *mem.Word { return mem.WordAt(b, int(24*(n%slots))+8*i) }

		end := func(place box.Place) box.End {
			return box.End{
				Place: place, Layout: l, Name: "box", Member: 7, Generation: 1, Bell: 1,
				Ring: func(uint64) {}, State: func(int) error { return nil },
			}
		}
		source := end(box.Place{Control: x.Memory(l.ControlBytes), Slot: l.Flat(x.Memory(l.SlotBytes()))})
		copied := end(box.Place{Control: x.Memory(l.ControlBytes), Slot: l.Flat(x.Memory(l.SlotBytes()))})
		out, err := box.NewOutbox(source, []int{1}, nil)
		if err != nil {
			panic(err)
		}
		relay, err := out.NewRelay(source, 0)
		if err != nil {
			panic(err)
		}
		replica, err := box.NewReplica(copied, nil)
		if err != nil {
			panic(err)
		}
		reading, err := box.NewInbox(copied, 0)
		if err != nil {
			panic(err)
		}
		x.Names(func(name func([]byte, string)) {
			for i, s := range names {
				name(words[8*i:], s)
			}
			l.Names(source.Control, source.Slot, "box: ", name)
			l.Names(copied.Control, copied.Slot, "replica: ", name)
		})
		in := &incoming{slots: slots, next: word(4), here: here}
		outgoing := &outgoing{slots: slots, sent: 1, landed: word(2)}
		completed(1).Store(1)
		if c.probe { // record 0
			job(0).Store(1)
		} else {
			in.next.Store(1)
			outgoing.landed.Store(1)
			completed(0).Store(1)
		}
		noise := []string{"busy", "look", "payload", "backed"}

		// land publishes an update. turn is held.
		land := func(t *explore.Thread, seq, a, b uint64) {
			h := copied.Header()
			h.Seq, h.Bytes, h.Stamp = seq, exploredBytes, rdma.Stamp{Clock: seq}
			p, err := replica.Begin(&h, box.Anywhere)
			if err != nil {
				t.Fail("%v", err)
			}
			mem.WordAt(p, 0).Store(a)
			mem.WordAt(p, 8).Store(b)
			replica.Commit(&h, true, box.Progress{Clock: seq, Published: seq})
			landed.Store(seq)
		}
		landRecords := func(t *explore.Thread) bool {
			_ = in.land(func(n uint64) error {
				if n == 0 {
					return nil
				}
				land(t, at(to, n, 0).Load(), at(to, n, 1).Load(), at(to, n, 2).Load())
				return nil
			}, func() { dirty.Store(1) })
			return in.begun
		}
		drain := func(t *explore.Thread) { in.drain(turn, func() bool { return landRecords(t) }) }

		x.Go("writer", func(t *explore.Thread) {
			for n := uint64(1); n <= c.updates; n++ {
				t.At("write", explore.Ignore{State: out, Fields: noise}, n)
				if c.mode == rdma.ByClock { // one step ahead of the reader
					t.Await(func() bool { return landed.Load()+2 >= n })
				} else {
					t.Await(func() bool { return taken.Load()+1 >= n })
				}
				b, err := out.Begin()
				if err != nil {
					t.Fail("%v", err)
				}
				mem.WordAt(b, 0).Store(n)
				mem.WordAt(b, 8).Store(n)
				if err := out.Commit(exploredBytes, rdma.Stamp{Clock: n}, nil); err != nil {
					t.Fail("%v", err)
				}
			}
		})

		x.Go("link", func(t *explore.Thread) {
			said := 0
			say := func(kind, value uint64) {
				t.Await(func() bool { return frame(said).Load() == 0 })
				frame(said).Store(value<<8 | kind)
				said++
			}
			t.Await(func() bool { return outgoing.landed.Load() > 0 })
			for relay.Sent() < c.updates {
				t.At("send", explore.Ignore{State: relay, Fields: noise}, outgoing.sent, outgoing.said)
				ring := outgoing.said > 0
				free := func() bool {
					return !ring || outgoing.free(func(slot uint64) bool { return completed(slot).Load() != 0 })
				}
				t.Await(func() bool { return relay.Ready() && free() })
				h, b, _, ok, err := relay.Next()
				if !ok || err != nil {
					t.Fail("Next: %v, %v", ok, err)
				}
				n := outgoing.sent
				if !ring {
					n = slots // beside the ring
				}
				first, second := mem.WordAt(b, 0).Load(), mem.WordAt(b, 8).Load()
				relay.Done()
				taken.Store(h.Seq)
				if !ring {
					if first != h.Seq || second != h.Seq {
						t.Fail("torn: update %d holds %d and %d", h.Seq, first, second)
					}
					say(frameUpdate, h.Seq)
					say(frameAfter, n-1)
					outgoing.said = outgoing.sent
					continue
				}
				at(from, n, 0).Store(h.Seq)
				at(from, n, 1).Store(first)
				at(from, n, 2).Store(second)
				completed(n % slots).Store(0)
				job(n % slots).Store(1 + n)
				outgoing.sent++
			}
			if c.word {
				say(frameAfter, outgoing.sent)
				say(frameWord, c.updates)
			}
		})

		x.Go("card", func(t *explore.Thread) {
			for {
				t.At("card")
				t.Await(func() bool { return job(0).Load() != 0 || job(1).Load() != 0 || landed.Load() == c.updates })
				a, b := job(0).Load(), job(1).Load()
				if a == 0 && b == 0 {
					return
				}
				n := max(a, b) - 1 // writes may overtake one another
				if a != 0 && b != 0 && t.Choose(2) == 1 {
					n = min(a, b) - 1
				}
				job(n % slots).Store(0)
				early := t.Choose(2) == 1
				seq := at(from, n, 0).Load()
				for i := range 3 {
					v := at(from, n, i).Load()
					if i == 2 && early {
						completed(n % slots).Store(1)
					}
					at(to, n, i).Store(v)
				}
				in.arrive(uint16(n))
				if !early {
					if at(from, n, 0).Load() != seq {
						t.Fail("record %d is filled again before its write has completed", n)
					}
					completed(n % slots).Store(1)
				}
				drain(t)
			}
		})

		x.Go("land", func(t *explore.Thread) {
			for n := 0; ; n++ {
				t.At("land", in.begun, n)
				t.Await(func() bool { return frame(n).Load() != 0 || !c.word && landed.Load() == c.updates })
				kind, value := frame(n).Load()&255, frame(n).Load()>>8
				if kind == 0 {
					return
				}
				for !turn.TryLock() {
					t.Await(func() bool { return turn.Load() == 0 })
				}
				switch kind {
				case frameUpdate:
					land(t, value, value, value)
				case frameAfter:
					in.begun = true
					for landRecords(t); in.next.Load() < value; landRecords(t) {
						t.Await(in.ready)
					}
				case frameWord:
					if landed.Load() != value {
						t.Fail("the word is here before update %d: %d has landed", value, landed.Load())
					}
				}
				frame(n).Store(0)
				turn.Unlock()
				drain(t)
				if kind == frameWord {
					return
				}
			}
		})

		x.Go("credit", func(t *explore.Thread) {
			for landed.Load() < c.updates {
				t.At("credit")
				t.Await(func() bool { return dirty.Load() != 0 || landed.Load() == c.updates })
				dirty.Store(0)
				if next := in.next.Load(); in.due(next, outgoing.landed.Load()) {
					outgoing.landed.Store(next)
				}
			}
		})

		x.Go("reader", func(t *explore.Thread) {
			for seen := uint64(0); seen < c.updates; {
				t.At("read", explore.Ignore{State: reading, Fields: []string{"payload"}}, seen)
				t.Await(func() bool { return landed.Load() > seen })
				u, ok, err := reading.Next()
				if err != nil || !ok || u.Seq <= seen {
					t.Fail("update %d, %v, %v, after %d", u.Seq, ok, err, seen)
				}
				a, b := mem.WordAt(u.Data, 0).Load(), mem.WordAt(u.Data, 8).Load()
				if a != u.Seq || b != u.Seq {
					t.Fail("torn: update %d holds %d and %d", u.Seq, a, b)
				}
				seen = u.Seq
				reading.Release(seen)
			}
		})
	}
}

// Updates that go through a ring come whole, in order and once, and before the word that is sent behind them.
func TestExploreRing(t *testing.T) {
	more := 0
	if os.Getenv("MALT_EXPLORE") == "big" {
		more = 1
	}
	for _, c := range []struct {
		name        string
		preemptions int // all interleavings are too many
		ringCase
	}{
		{"newest", 1, ringCase{mode: rdma.Newest, updates: 4}},
		{"newest, twice", 2, ringCase{mode: rdma.Newest, updates: 3}},
		{"newest, with a word", 1, ringCase{mode: rdma.Newest, updates: 3, word: true}},
		{"probe", 2, ringCase{mode: rdma.Newest, updates: 2, probe: true}},
		{"lock-step", 1, ringCase{mode: rdma.ByClock, updates: 3, word: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			explore.Must(t, explore.Check(explore.Options{Preemptions: c.preemptions + more}, c.setup()))
		})
	}
}

//go:build explore

package remote

import (
	"slices"
	"testing"

	"malt/internal/explore"
	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/mem"
)

// fenceCase is an owner that is killed at any step, while its card may go on to write. The reader takes its room
// back, reads what has landed, and gives the memory of the box up; another process has the owner's place in the next
// generation, and its updates, which go by TCP, land in that memory. Threads:
//
//	owner      takes the rooms that are offered, has the card write, and sends the headers
//	card       writes word by word, and tells the reader; it outlives the owner
//	land       lands what comes, offers rooms, and begins the next generation when the owner is dead
//	reader     reads what has landed, of one generation and then of the other
//	successor  sends its updates once the next generation has begun
type fenceCase struct {
	mode    rdma.Mode
	updates uint64 // of each generation
}

func (c fenceCase) setup() func(x *explore.Exec) {
	spec := rdma.Spec{Bytes: exploredBytes, Mode: c.mode}
	l, err := box.NewLayout(spec, 1)
	if err != nil {
		panic(err)
	}
	return func(x *explore.Exec) {
		names := []string{"offer", "job", "arrived", "frame", "killed", "began", "landed", "drained"}
		words := x.Memory(8 * len(names))
		word := func(i int) *mem.Word { return mem.WordAt(words, 8*i) }
		offer, job, arrived, frame := word(0), word(1), word(2), word(3)
		killed, began := word(4), word(5)   // the owner is dead; the next generation has begun
		landed, drained := word(6), word(7) // generation<<32 | seq; the reader has all of the first
		memory := l.Flat(x.Memory(2 * l.SlotBytes()))
		var lost []int // memory in which the dead owner's card may write

		// copies is the reader's copy of the box in one generation. A slot is made of the first free memory.
		copies := func(generation uint32) (*rooms, box.End, *box.Inbox, []int) {
			where := slices.Repeat([]int{-1}, l.Slots)
			place := box.Place{Control: x.Memory(l.ControlBytes), Slot: func(i int) []byte {
				if where[i] < 0 {
					return nil
				}
				return memory(where[i])
			}}
			e := box.End{
				Place: place, Layout: l, Name: "box", Member: 7, Generation: generation, Bell: 1,
				Ring: func(uint64) {}, State: func(int) error { return nil },
			}
			replica, err := box.NewReplica(e, func(slot, _, _ int) error {
				for at := 0; where[slot] < 0; at++ {
					if !slices.Contains(where, at) && !slices.Contains(lost, at) {
						where[slot] = at
					}
				}
				return nil
			})
			if err != nil {
				panic(err)
			}
			in, err := box.NewInbox(e, 0)
			if err != nil {
				panic(err)
			}
			return &rooms{lock: single{}, box: replica}, e, in, where
		}
		first, firstEnd, firstIn, firstAt := copies(1)
		second, secondEnd, secondIn, secondAt := copies(2)
		x.Names(func(name func([]byte, string)) {
			for i, s := range names {
				name(words[8*i:], s)
			}
		})

		x.Go("owner", func(t *explore.Thread) {
			var p placing
			known := uint64(0)
			for seq := uint64(1); seq <= c.updates; seq++ {
				t.At("own", p, known, seq)
				t.Await(func() bool { return offer.Load() != known && frame.Load() == 0 || killed.Load() != 0 })
				if killed.Load() != 0 {
					return
				}
				known = offer.Load()
				f := offerOf(known)
				if err := p.grant(room{number: uint32(f.number), landed: f.landed, seq: f.seq, bytes: exploredBytes, address: f.at}); err != nil {
					t.Fail("%v", err)
				}
				into, ok := p.take(&box.Header{Seq: seq, Bytes: exploredBytes}, true, 1)
				if !ok {
					t.Fail("there is no room for %d", seq)
				}
				job.Store(seq<<16 | into.address<<8 | uint64(into.number))
				t.Await(func() bool { return job.Load() == 0 || killed.Load() != 0 })
				if killed.Load() != 0 {
					return
				}
				frame.Store(seq<<8 | uint64(into.number))
			}
		})

		x.Go("card", func(t *explore.Thread) {
			for {
				t.At("card")
				t.Await(func() bool { return job.Load() != 0 || killed.Load() != 0 })
				j := job.Load()
				if j == 0 {
					return
				}
				b := memory(int(j >> 8 & 255))
				mem.WordAt(b, headBytes).Store(j >> 16)
				mem.WordAt(b, headBytes+8).Store(j >> 16)
				arrived.Or(1 << (j & 255))
				job.Store(0)
			}
		})

		noise := []string{"busy", "look", "payload", "backed"}
		x.Go("land", func(t *explore.Thread) {
			land := func(r *rooms, e box.End, seq uint64, from uint32) {
				h := e.Header()
				h.Seq, h.Bytes, h.Stamp = seq, exploredBytes, rdma.Stamp{Clock: seq}
				b, _, err := r.begin(&h, from)
				if err != nil {
					t.Fail("%v", err)
				}
				now := uint64(e.Generation)<<32 | seq
				if from == 0 {
					mem.WordAt(b, 0).Store(now)
					mem.WordAt(b, 8).Store(now)
				}
				r.commit(&h, true, box.Progress{Clock: seq, Published: seq})
				landed.Store(now)
			}
			number := uint32(0)
			for at := uint64(0); ; {
				t.At("land", explore.Ignore{State: first.box, Fields: noise}, first.out, firstAt, number, at)
				t.Await(func() bool { return c.mode.Depth() == 0 || first.box.Acked() == at || killed.Load() != 0 })
				if first.out.number == 0 && at < c.updates && killed.Load() == 0 {
					number++
					o, err := first.offer(func() uint32 { return number })
					if err != nil || o.number == 0 {
						t.Fail("room %d: %v", o.number, err)
					}
					offer.Store(offerWord{uint64(number), o.landed, o.seq, uint64(firstAt[o.slot])}.word())
				}
				t.Await(func() bool { return frame.Load() != 0 || killed.Load() != 0 })
				f := frame.Load()
				if f == 0 || killed.Load() != 0 && t.Choose(2) == 1 { // what was on its way may be lost
					break
				}
				t.Await(func() bool { return arrived.Load()>>(f&255)&1 != 0 })
				at = f >> 8
				land(first, firstEnd, at, uint32(f&255))
				frame.Store(0)
			}
			first.void(func(slot int) { lost = append(lost, firstAt[slot]) })
			began.Store(1)
			t.Await(func() bool { return drained.Load() != 0 })
			for seq := uint64(1); seq <= c.updates; seq++ {
				t.At("next", explore.Ignore{State: second.box, Fields: noise}, secondAt, lost, seq)
				t.Await(func() bool { return began.Load() > seq && (c.mode.Depth() == 0 || second.box.Acked() == seq-1) })
				land(second, secondEnd, seq, 0)
			}
		})

		x.Go("reader", func(t *explore.Thread) {
			for generation, in := range []*box.Inbox{firstIn, secondIn} {
				generation := uint64(generation + 1)
				for seen := uint64(0); generation == 1 || seen < c.updates; {
					t.At("read", explore.Ignore{State: in, Fields: []string{"payload"}}, generation, seen)
					t.Await(func() bool { return landed.Load() > generation<<32|seen || generation == 1 && began.Load() != 0 })
					u, ok, err := in.Next()
					if err != nil {
						t.Fail("%v", err)
					}
					if !ok {
						break
					}
					want := u.Seq
					if generation == 2 {
						want |= 2 << 32
					}
					if a, b := mem.WordAt(u.Data, 0).Load(), mem.WordAt(u.Data, 8).Load(); a != want || b != want {
						t.Fail("torn: update %d of generation %d holds %x and %x", u.Seq, generation, a, b)
					}
					seen = u.Seq
					in.Release(seen)
				}
				drained.Store(1)
			}
		})

		x.Go("successor", func(t *explore.Thread) {
			for seq := uint64(1); seq <= c.updates; seq++ {
				t.At("succeed", seq)
				t.Await(func() bool { return began.Load() == 1 && seq == 1 || landed.Load() == 2<<32|(seq-1) })
				began.Store(1 + seq)
			}
		})

		x.Go("death", func(*explore.Thread) { killed.Store(1) })
	}
}

// Nothing that the card of a dead owner writes lands in what is read, neither of its own box nor of that of the
// process which has its place in the next generation.
func TestExploreFence(t *testing.T) {
	for name, mode := range map[string]rdma.Mode{"newest": rdma.Newest, "queue": rdma.Queue(1)} {
		t.Run(name, func(t *testing.T) {
			explore.Must(t, explore.Check(explore.Options{Preemptions: 2}, fenceCase{mode, 2}.setup()))
		})
	}
}

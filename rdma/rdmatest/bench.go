package rdmatest

import (
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	"malt/rdma"
)

// BenchScatter measures one update of each length from Begin to Release, with
// one copy in and one look out, in one goroutine: what the transport costs when
// nobody has to be woken. Names are such as inmem/4KiB.
func BenchScatter(b *testing.B, open func(b *testing.B, n int) []rdma.Transport) {
	for _, readers := range []int{1, 3} {
		for _, bytes := range []int{64, 4 << 10, 64 << 10, 1 << 20, 16 << 20} {
			ranks := open(b, 1+readers)
			b.Run(fmt.Sprintf("%s/%s/readers=%d", ranks[0].Name(), size(bytes), readers), func(b *testing.B) {
				out, ins := benchBoxes(b, ranks, "scatter", rdma.Spec{Bytes: bytes})
				src := make([]byte, bytes)
				b.SetBytes(int64(bytes))
				b.ReportAllocs()
				clock := uint64(0)
				for b.Loop() {
					clock++
					dst, err := out.Begin()
					if err != nil {
						b.Fatal(err)
					}
					if err := out.Commit(copy(dst, src), rdma.Stamp{Clock: clock}, nil); err != nil {
						b.Fatal(err)
					}
					for _, in := range ins {
						u, ok, err := in.Next()
						if !ok || err != nil {
							b.Fatal(ok, err)
						}
						in.Release(u.Seq)
					}
				}
			})
			for _, t := range ranks {
				_ = t.Close()
			}
		}
	}
}

// TripBytes is the length of the updates of BenchRoundTrip.
const TripBytes = 64

// BenchRoundTrip measures an update of TripBytes to another goroutine, which looks at
// it, and an answer of as many: two hand-overs, each with a wait. The slot is given
// back once the answer is on its way.
func BenchRoundTrip(b *testing.B, open func(b *testing.B, n int) []rdma.Transport) {
	ranks := open(b, 2)
	b.Run(ranks[0].Name(), func(b *testing.B) {
		there, ins := benchBoxes(b, ranks, "there", rdma.Spec{Bytes: TripBytes})
		back, answers := benchBoxes(b, []rdma.Transport{ranks[1], ranks[0]}, "back", rdma.Spec{Bytes: TripBytes})
		done := make(chan error, 1)
		go func() {
			for clock := uint64(1); ; clock++ {
				u, ok, err := see(ranks[1], ins[0], clock)
				if !ok {
					done <- err
					return
				}
				if _, err := put(back, 1, clock, TripBytes, nil); err != nil {
					done <- err
					return
				}
				ins[0].Release(u.Seq)
			}
		}()
		clock, seen := uint64(0), uint64(0)
		for b.Loop() {
			clock++
			if _, err := put(there, 0, clock, TripBytes, nil); err != nil {
				b.Fatal(err)
			}
			if clock > 1 {
				answers[0].Release(seen)
			}
			u, ok, err := see(ranks[0], answers[0], clock)
			if !ok {
				b.Fatal("no answer: ", err)
			}
			seen = u.Seq
		}
		_ = there.Close()
		if err := <-done; err != nil {
			b.Fatal(err)
		}
	})
	for _, t := range ranks {
		_ = t.Close()
	}
}

// see waits for the sender's update of that clock, and reads the end of it; ok is false
// where the sender has left, or something failed.
func see(t rdma.Transport, in rdma.Inbox, clock uint64) (u rdma.Update, ok bool, err error) {
	err = t.Wait(context.Background(), func() bool {
		c, gone := in.Clock()
		return c >= clock || gone != nil
	})
	if err != nil {
		return u, false, err
	}
	if u, ok, err = in.Next(); !ok {
		return u, false, err
	}
	if end := u.Data[len(u.Data)-8:]; u.Clock != clock || binary.LittleEndian.Uint64(end) == 0 {
		return u, false, fmt.Errorf("clock %d, expected %d; ends with %x", u.Clock, clock, end)
	}
	return u, true, nil
}

// benchBoxes makes a box of the first rank that all others read.
func benchBoxes(b *testing.B, ranks []rdma.Transport, name string, s rdma.Spec) (rdma.Outbox, []rdma.Inbox) {
	var readers []int
	for _, t := range ranks[1:] {
		readers = append(readers, t.Rank())
	}
	out, err := ranks[0].Publish(b.Context(), name, s, readers)
	if err != nil {
		b.Fatal(err)
	}
	var ins []rdma.Inbox
	for _, t := range ranks[1:] {
		in, err := t.Subscribe(b.Context(), name, s, []int{ranks[0].Rank()})
		if err != nil {
			b.Fatal(err)
		}
		ins = append(ins, in...)
	}
	b.Cleanup(func() { // so that the names are free when b runs again
		_ = out.Close()
		for _, in := range ins {
			_ = in.Close()
		}
	})
	return out, ins
}

func size(bytes int) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%dMiB", bytes>>20)
	case bytes >= 1<<10:
		return fmt.Sprintf("%dKiB", bytes>>10)
	}
	return fmt.Sprintf("%dB", bytes)
}

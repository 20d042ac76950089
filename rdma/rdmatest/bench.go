package rdmatest

import (
	"context"
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

// BenchRoundTrip measures a message to another goroutine and its answer: two
// hand-overs, each with a wait.
func BenchRoundTrip(b *testing.B, open func(b *testing.B, n int) []rdma.Transport) {
	ranks := open(b, 2)
	b.Run(ranks[0].Name(), func(b *testing.B) {
		there, ins := benchBoxes(b, ranks, "there", rdma.Spec{Bytes: 8})
		back, answers := benchBoxes(b, []rdma.Transport{ranks[1], ranks[0]}, "back", rdma.Spec{Bytes: 8})
		done := make(chan error, 1)
		go func() {
			for clock := uint64(1); ; clock++ {
				left := false
				err := waitClock(ranks[1], ins[0], clock, &left)
				if left || err != nil {
					done <- err
					return
				}
				if _, err := put(back, 1, clock, 8, nil); err != nil {
					done <- err
					return
				}
			}
		}()
		clock := uint64(0)
		for b.Loop() {
			clock++
			if _, err := put(there, 0, clock, 8, nil); err != nil {
				b.Fatal(err)
			}
			if err := waitClock(ranks[0], answers[0], clock, new(bool)); err != nil {
				b.Fatal(err)
			}
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

// waitClock waits for the sender's clock, or for the sender to leave.
func waitClock(t rdma.Transport, in rdma.Inbox, clock uint64, left *bool) error {
	return t.Wait(context.Background(), func() bool {
		c, err := in.Clock()
		*left = err != nil
		return c >= clock || *left
	})
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

package remote

import (
	"context"
	"io"
	"slices"
	"syscall"
	"testing"
	"time"

	"malt/rdma"
)

// against runs what MALT does and the bare thing in turns, and reports the
// median of each, and how many times as long MALT took: who else uses the machine
// meanwhile slows both.
func against(b *testing.B, unit string, per float64, malt, bare func()) {
	var took [2][]float64
	var used [2]time.Duration
	for b.Loop() {
		for i, do := range []func(){malt, bare} {
			before, start := processor(), time.Now()
			do()
			took[i] = append(took[i], time.Since(start).Seconds()/per)
			used[i] += processor() - before
		}
	}
	median := func(x []float64) float64 {
		slices.Sort(x)
		return x[len(x)/2]
	}
	m, l := median(took[0]), median(took[1])
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(m, unit)
	b.ReportMetric(l, "bare-"+unit)
	b.ReportMetric(m/l, "times")
	b.ReportMetric(used[0].Seconds()/used[1].Seconds(), "times-cpu")
}

// processor is the time that this process has used of processors.
func processor() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkPutSeen is 64 bytes from put to seen, as half a round trip, against
// half the round trip of as many bytes between two goroutines over TCP.
func BenchmarkPutSeen(b *testing.B) {
	const bytes, trips = 64, 100
	all := openRanks(b, 2, nil)
	there, in := pair(b, all, rdma.Spec{Bytes: bytes})
	back, err := all[1].Publish(b.Context(), "back", rdma.Spec{Bytes: bytes}, []int{0})
	if err != nil {
		b.Fatal(err)
	}
	ins, err := all[0].Subscribe(b.Context(), "back", rdma.Spec{Bytes: bytes}, []int{1})
	if err != nil {
		b.Fatal(err)
	}
	answers := ins[0]
	put := func(out rdma.Outbox, clock uint64) {
		if _, err := out.Begin(); err != nil {
			b.Error(err)
		}
		if err := out.Commit(bytes, rdma.Stamp{Clock: clock}, nil); err != nil {
			b.Error(err)
		}
	}
	await := func(t *Transport, in rdma.Inbox, clock uint64) (gone error) {
		_ = t.Wait(context.Background(), func() bool {
			var c uint64
			c, gone = in.Clock()
			return c >= clock || gone != nil
		})
		return gone
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for clock := uint64(1); await(all[1], in, clock) == nil; clock++ {
			put(back, clock)
		}
	}()
	here, far := loop(b)
	go func() {
		buf := make([]byte, frameBytes+preamble+bytes)
		for {
			if _, err := io.ReadFull(far, buf); err != nil {
				return
			}
			_, _ = far.Write(buf)
		}
	}()
	buf := make([]byte, frameBytes+preamble+bytes)
	clock := uint64(0)
	against(b, "µs", 2*trips*1e-6, func() {
		for range trips {
			clock++
			put(there, clock)
			_ = await(all[0], answers, clock)
		}
	}, func() {
		for range trips {
			_, _ = here.Write(buf)
			_, _ = io.ReadFull(here, buf)
		}
	})
	_ = there.Close()
	<-done
	closeAll(b, all)
}

// BenchmarkLarge is an update of 16 MB from put to seen, against as many bytes
// written by one goroutine and read by another.
func BenchmarkLarge(b *testing.B) {
	const bytes = 16 << 20
	all := openRanks(b, 2, nil)
	out, in := pair(b, all, rdma.Spec{Bytes: bytes})
	here, far := loop(b)
	got := make(chan struct{})
	dst := make([]byte, bytes)
	go func() {
		for {
			if _, err := io.ReadFull(far, dst); err != nil {
				return
			}
			got <- struct{}{}
		}
	}()
	src := make([]byte, bytes)
	clock := uint64(0)
	against(b, "ms", 1e-3, func() {
		clock++
		if _, err := out.Begin(); err != nil {
			b.Fatal(err)
		}
		if err := out.Commit(bytes, rdma.Stamp{Clock: clock}, nil); err != nil {
			b.Fatal(err)
		}
		_ = all[1].Wait(context.Background(), func() bool {
			c, err := in.Clock()
			return c >= clock || err != nil
		})
		u, _, _ := in.Next()
		in.Release(u.Seq)
	}, func() {
		_, _ = here.Write(src)
		<-got
	})
	closeAll(b, all)
}

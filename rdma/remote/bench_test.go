package remote

import (
	"context"
	"fmt"
	"io"
	"net"
	"testing"

	"malt/rdma"
	"malt/rdma/rdmatest"
)

func open2(b *testing.B, n int) []rdma.Transport {
	all := make([]rdma.Transport, n)
	for i, t := range openRanks(b, n, nil) {
		all[i] = t
	}
	return all
}

// BenchmarkRoundTrip is beside BenchmarkBarePingPong: the same without MALT.
func BenchmarkRoundTrip(b *testing.B) { rdmatest.BenchRoundTrip(b, open2) }

// loop is a connection to this process itself.
func loop(b testing.TB) (dialled, accepted net.Conn) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	if dialled, err = net.Dial("tcp", l.Addr().String()); err == nil {
		accepted, err = l.Accept()
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { dialled.Close(); accepted.Close() })
	return dialled, accepted
}

// BenchmarkBarePingPong sends as many bytes there and back as an update of
// BenchmarkRoundTrip takes.
func BenchmarkBarePingPong(b *testing.B) {
	const bytes = frameBytes + preamble + rdmatest.TripBytes
	here, there := loop(b)
	go func() {
		buf := make([]byte, bytes)
		for {
			if _, err := io.ReadFull(there, buf); err != nil {
				return
			}
			_, _ = there.Write(buf)
		}
	}()
	buf := make([]byte, bytes)
	for b.Loop() {
		_, _ = here.Write(buf)
		if _, err := io.ReadFull(here, buf); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStream sends updates as fast as the reader takes them, in queue mode,
// so that each arrives; beside BenchmarkBareCopy.
func BenchmarkStream(b *testing.B) {
	for _, bytes := range []int{64 << 10, 1 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("%dKiB", bytes>>10), func(b *testing.B) {
			all := openRanks(b, 2, nil)
			out, in := pair(b, all, rdma.Spec{Bytes: bytes, Mode: rdma.Queue(2)})
			stop, done := context.WithCancel(context.Background())
			go func() {
				for stop.Err() == nil {
					_ = all[1].Wait(stop, func() bool {
						for u, ok, _ := in.Next(); ok; u, ok, _ = in.Next() {
							in.Release(u.Seq)
						}
						_, gone := in.Clock()
						return gone != nil
					})
				}
			}()
			b.SetBytes(int64(bytes))
			b.ReportAllocs()
			clock := uint64(0)
			for b.Loop() {
				clock++
				_ = all[0].Wait(context.Background(), func() bool {
					slot, err := out.Begin()
					if slot != nil && out.Commit(bytes, rdma.Stamp{Clock: clock}, nil) != nil || err != nil {
						b.Fatal(err)
					}
					return slot != nil
				})
			}
			_ = all[0].Wait(context.Background(), func() bool { return out.Acked(1) >= clock })
			done()
			closeAll(b, all)
		})
	}
}

func BenchmarkBareCopy(b *testing.B) {
	for _, bytes := range []int{64 << 10, 1 << 20, 16 << 20} {
		b.Run(fmt.Sprintf("%dKiB", bytes>>10), func(b *testing.B) {
			here, there := loop(b)
			src, dst := make([]byte, bytes), make([]byte, bytes)
			got := make(chan error)
			go func() {
				for {
					if _, err := io.ReadFull(there, dst); err != nil {
						return
					}
					got <- nil
				}
			}()
			b.SetBytes(int64(bytes))
			for b.Loop() {
				_, _ = here.Write(src)
				<-got
			}
		})
	}
}

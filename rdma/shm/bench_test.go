package shm

import (
	"testing"

	"malt/rdma"
	"malt/rdma/internal/mem"
	"malt/rdma/rdmatest"
)

func bench(b *testing.B, n int) []rdma.Transport {
	return openWith(b, n, policyFor(n, mem.Cores(0), false))
}

func BenchmarkScatter(b *testing.B)   { rdmatest.BenchScatter(b, bench) }
func BenchmarkRoundTrip(b *testing.B) { rdmatest.BenchRoundTrip(b, bench) }

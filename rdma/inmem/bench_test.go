package inmem_test

import (
	"testing"

	"malt/rdma"
	"malt/rdma/inmem"
	"malt/rdma/rdmatest"
)

func open(_ *testing.B, n int) []rdma.Transport { return inmem.New(n) }

func BenchmarkScatter(b *testing.B)   { rdmatest.BenchScatter(b, open) }
func BenchmarkRoundTrip(b *testing.B) { rdmatest.BenchRoundTrip(b, open) }

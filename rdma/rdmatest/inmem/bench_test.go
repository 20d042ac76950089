package inmem_test

import (
	"testing"

	"malt/rdma"
	"malt/rdma/rdmatest"
	"malt/rdma/rdmatest/inmem"
)

func open(_ *testing.B, n int) []rdma.Transport { return inmem.New(n) }

func BenchmarkScatter(b *testing.B)   { rdmatest.BenchScatter(b, open) }
func BenchmarkRoundTrip(b *testing.B) { rdmatest.BenchRoundTrip(b, open) }

package inmem_test

import (
	"testing"

	"malt/rdma"
	"malt/rdma/rdmatest"
	"malt/rdma/rdmatest/inmem"
)

func TestConformance(t *testing.T) {
	rdmatest.Run(t, func(t *testing.T, n int) []rdma.Transport { return inmem.New(n) })
}

// Of the ranks of several hosts those of rank 0's come first.
func TestConformanceHosts(t *testing.T) {
	rdmatest.Run(t, func(t *testing.T, n int) []rdma.Transport {
		host := make([]int, n)
		for r := 3; r < n; r++ {
			host[r] = 1 + r%2
		}
		return inmem.NewHosts(host...)
	})
}

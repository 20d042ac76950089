package inmem_test

import (
	"testing"

	"malt/rdma"
	"malt/rdma/inmem"
	"malt/rdma/rdmatest"
)

func TestConformance(t *testing.T) {
	rdmatest.Run(t, func(t *testing.T, n int) []rdma.Transport { return inmem.New(n) })
}

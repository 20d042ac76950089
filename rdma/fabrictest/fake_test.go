package fabrictest

import (
	"testing"

	"malt/rdma/fabric"
)

var _ fabric.Carrier = (*Card)(nil)

func TestFake(t *testing.T) {
	var n Net
	Run(t, func(*testing.T) fabric.Carrier { return n.Open() })
}

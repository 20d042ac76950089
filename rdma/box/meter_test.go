package box

import (
	"testing"

	"malt/rdma"
)

func TestMeter(t *testing.T) {
	m := NewMeter(2)
	m.sent(1, 10)
	m.sent(1, 0)
	m.received(0, 3)
	m.sent(7, 1) // unknown: not counted, and no panic
	if got, want := m.Traffic(1), (rdma.Traffic{SentMessages: 2, SentBytes: 10}); got != want {
		t.Errorf("%+v, expected %+v", got, want)
	}
	if got, want := m.Traffic(0), (rdma.Traffic{ReceivedMessages: 1, ReceivedBytes: 3}); got != want {
		t.Errorf("%+v, expected %+v", got, want)
	}
	for _, peer := range []int{-1, 2} {
		if got := m.Traffic(peer); got != (rdma.Traffic{}) {
			t.Errorf("peer %d: %+v", peer, got)
		}
	}
	var none *Meter
	none.sent(0, 1) // an End without a Meter
	none.received(0, 1)
}

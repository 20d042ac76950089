package box

import (
	"sync/atomic"

	"malt/rdma"
)

// Meter counts what one rank exchanges with each peer, over all of its boxes.
// An update counts as sent to every reader that it was published to, and as
// received when the reader gets it: one that was overwritten unseen was sent and
// never received.
type Meter struct{ peers []counters }

// counters are this process's own; 64 bytes, so that two goroutines that count
// different peers do not share a line.
type counters struct {
	sentMessages, sentBytes         atomic.Uint64
	receivedMessages, receivedBytes atomic.Uint64
	_                               [32]byte
}

// NewMeter counts for size peers.
func NewMeter(size int) *Meter { return &Meter{make([]counters, size)} }

// Traffic is what was counted with peer; zero for one that does not exist.
func (m *Meter) Traffic(peer int) rdma.Traffic {
	if peer < 0 || peer >= len(m.peers) {
		return rdma.Traffic{}
	}
	c := &m.peers[peer]
	return rdma.Traffic{
		SentMessages: c.sentMessages.Load(), SentBytes: c.sentBytes.Load(),
		ReceivedMessages: c.receivedMessages.Load(), ReceivedBytes: c.receivedBytes.Load(),
	}
}

func (m *Meter) sent(peer, n int) {
	if m != nil && peer < len(m.peers) {
		m.peers[peer].sentMessages.Add(1)
		m.peers[peer].sentBytes.Add(uint64(n))
	}
}

func (m *Meter) received(peer, n int) {
	if m != nil && peer < len(m.peers) {
		m.peers[peer].receivedMessages.Add(1)
		m.peers[peer].receivedBytes.Add(uint64(n))
	}
}

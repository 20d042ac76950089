package rows

import (
	"malt/internal/say"
	"malt/rdma"
)

// Course is how far a rank is with a call, a value that knows of numbers of bytes alone. A call
// has rounds: in each this rank sends so many bytes to each of its peers there, and gets so many.
type Course struct {
	chunk  int // bytes of a message, at most
	number uint64
	round  uint16
	peers  []peer
}

type peer struct {
	rank     int
	sent, to int
	got      int
	from     int // unknown: the first message says so
	at       int // bytes of its message that is here, and not done with
}

const unknown = -1

// verdict is what to do with a message.
type verdict int

const (
	keep verdict = iota // it is of a later round, or call
	drop                // of a call that has been given up
	take
)

// enter begins a round with these peers.
func (c *Course) enter(number uint64, round uint16, peers []peer) {
	c.number, c.round, c.peers = number, round, peers
}

// next is what is to be sent to a peer next: none when it has all.
func (c *Course) next(i int) (n int, stamp rdma.Stamp) {
	p := &c.peers[i]
	return min(c.chunk, p.to-p.sent), rdma.Stamp{Clock: c.number, Kind: c.round, Tag: uint64(p.sent), Age: uint64(p.to)}
}

// judge says what to do with a message of n bytes of a peer: its messages come in order.
func (c *Course) judge(i int, s rdma.Stamp, n int) (verdict, error) {
	p := &c.peers[i]
	switch {
	case s.Clock < c.number:
		return drop, nil
	case s.Clock > c.number || s.Kind > c.round:
		return keep, nil
	}
	if p.from == unknown && s.Kind == c.round && s.Age > 0 && s.Age < 1<<47 {
		p.from = int(s.Age)
	}
	if s.Kind < c.round || p.got == p.from || s.Age != uint64(p.from) || s.Tag != uint64(p.got) || n != min(c.chunk, p.from-p.got) {
		err := say.Errorf(rdma.ErrCorrupt, "rank %d sent %d of %d bytes at %d in round %d", p.rank, n, s.Age, s.Tag, s.Kind)
		if p.from == unknown {
			return keep, err.At("expected the beginning of a list in round %d", c.round)
		}
		return keep, err.At("expected %d of %d at %d in round %d", min(c.chunk, p.from-p.got), p.from, p.got, c.round)
	}
	p.at = n
	return take, nil
}

// took says that the message of a peer is done with.
func (c *Course) took(i int) {
	p := &c.peers[i]
	p.got, p.at = p.got+p.at, 0
}

// over tells whether the round is: all has been sent, and has come.
func (c *Course) over() bool {
	for _, p := range c.peers {
		if p.sent < p.to || p.got != p.from {
			return false
		}
	}
	return true
}

// late appends to list the peers that have not taken all, or from which more has to come before
// this rank can go on.
func (c *Course) late(list []int) []int {
	for _, p := range c.peers {
		if p.sent < p.to || p.got != p.from && p.at == 0 {
			list = append(list, p.rank)
		}
	}
	return list
}

package core

import (
	"encoding/binary"
	"slices"

	"malt/rdma"
)

// outcome is what a collective call, or a part of one, has come to. A rank keeps that of the
// last one for members that are still in it: see settling.
type outcome struct {
	at     uint64    // Collective.at
	view   rdma.View // whose ranks took part
	pieces [][]byte  // Sink.Result
	told   []heard   // about objects, in the headers of the call
	whole  bool      // all of it has come, if another member gives it
}

// heard is where the ranks were with an object at the end of a call.
type heard struct {
	id uint32
	by []standing // by rank
}

// number is that of the call; 0: none has completed.
func (o *outcome) number() uint64 {
	if o == nil {
		return 0
	}
	return o.at
}

// at is the number of the call and of the part: it grows from one to the next.
func (c *Collective) at() uint64 { return c.n<<16 | uint64(c.part) }

// number is at, and 0 where there is no call.
func (c *Collective) number() uint64 {
	if c == nil {
		return 0
	}
	return c.at()
}

// settled is asked before each step: whether the call is on, as one of the ranks of the view
// in which this rank is settled. done: another member has given the outcome.
func (c *Collective) settled() (done, on bool, err error) {
	s := c.Job.settling
	if s == nil {
		return false, true, nil
	}
	s.call = c
	if ok, err := s.step(nil); err != nil || !ok {
		c.late = append(c.late[:0], s.late...)
		return false, false, err
	}
	if o := s.given; o != nil && o.whole && o.at == c.at() {
		done, err = c.follow(o)
		return done, false, err
	}
	if c.view.Generation != s.view.Generation {
		c.again(s.view)
	}
	return false, true, nil
}

// follow completes the call as another member has. News of objects are in the queues of the
// ranks that go on, and in the outcome for the others.
func (c *Collective) follow(o *outcome) (done bool, err error) {
	s := c.Job.settling
	c.late = c.late[:0]
	for _, r := range s.view.Ranks {
		for in := &c.Job.in[r]; r != c.Job.Rank && (in.heard != c.n || in.part != c.part || in.view != o.view.Generation-1); {
			if !in.has {
				if in.next, in.has, err = in.inbox.Next(); err != nil {
					return false, err
				}
			}
			if !in.has {
				c.late = append(c.late, r)
				break
			}
			if in.next.Tag > c.n {
				return false, errSettling
			}
			if err := c.drop(r); err != nil {
				return false, err
			}
		}
	}
	if len(c.late) > 0 {
		return false, nil
	}
	for _, h := range o.told {
		if m := s.member(h.id); m != nil {
			for r, at := range h.by {
				if o.view.Has(r) && !s.view.Has(r) {
					c.Job.hear(r, m, at)
				}
			}
		}
	}
	c.view = o.view
	return true, nil
}

// keep keeps the outcome of the call, which has completed.
func (c *Collective) keep() {
	s := c.Job.settling
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = &outcome{at: c.at(), view: c.view, pieces: c.sink.Result(), told: c.told}
	s.call, s.given, s.ending = nil, nil, false
	c.Job.spare ^= 1
	if !s.done {
		c.Job.T.Wake()
		return
	}
	_ = c.Job.release() // it is the objects' no longer
}

// quit says that this rank is in no call any more.
func (c *Collective) quit() {
	if s := c.Job.settling; s != nil {
		s.mu.Lock()
		s.call = nil
		s.mu.Unlock()
	}
}

// header appends what precedes the pieces, for members of the view now: the generation and
// the members of that of the call; of each object its number, and where the ranks were that
// are left out since; and the lengths of the pieces.
func (o *outcome) header(b []byte, now rdma.View, size int) []byte {
	b = binary.LittleEndian.AppendUint64(b, o.view.Generation)
	members := make([]byte, (size+7)/8)
	for _, r := range o.view.Ranks {
		members[r/8] |= 1 << (r % 8)
	}
	b = append(b, members...)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(o.told)))
	for _, h := range o.told {
		b = binary.LittleEndian.AppendUint32(b, h.id)
		for _, r := range o.view.Ranks {
			if !now.Has(r) {
				b = binary.LittleEndian.AppendUint64(b, h.by[r].clock)
				b = binary.LittleEndian.AppendUint64(b, h.by[r].head)
			}
		}
	}
	for _, p := range o.pieces {
		b = binary.LittleEndian.AppendUint64(b, uint64(len(p)))
	}
	return b
}

// readOutcome checks every length before it uses it.
func readOutcome(b []byte, now rdma.View, size int) (o *outcome, lengths []uint64, err error) {
	o = &outcome{}
	fixed := 8 + (size+7)/8
	if len(b) < fixed+4 {
		return nil, nil, errSettling
	}
	o.view.Generation = binary.LittleEndian.Uint64(b)
	var out []int
	for r := range size {
		if b[8+r/8]>>(r%8)&1 != 0 {
			o.view.Ranks = append(o.view.Ranks, r)
			if !now.Has(r) {
				out = append(out, r)
			}
		}
	}
	count, each := int(binary.LittleEndian.Uint32(b[fixed:])), 4+16*len(out)
	if b = b[fixed+4:]; count > len(b)/each || (len(b)-count*each)%8 != 0 || o.view.Generation == 0 {
		return nil, nil, errSettling
	}
	for ; count > 0; count-- {
		h := heard{binary.LittleEndian.Uint32(b), make([]standing, size)}
		for i, r := range out {
			h.by[r] = standing{binary.LittleEndian.Uint64(b[4+16*i:]), binary.LittleEndian.Uint64(b[12+16*i:])}
		}
		o.told, b = append(o.told, h), b[each:]
	}
	for ; len(b) > 0; b = b[8:] {
		lengths = append(lengths, binary.LittleEndian.Uint64(b))
	}
	if slices.Max(append(lengths, 0)) > 1<<47 {
		return nil, nil, errSettling
	}
	return o, lengths, nil
}

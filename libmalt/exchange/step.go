package exchange

import (
	"slices"

	"malt/internal/say"
	"malt/rdma"
)

// Step sends, adds up and receives what can be, a chunk of each segment in turn. It
// never waits.
func (x *Exchange) Step(w Work) error {
	for moved := true; moved; {
		moved = false
		for _, o := range x.others {
			did, err := x.send(o, w)
			if err != nil {
				return err
			}
			moved = moved || did
		}
		for _, o := range x.own {
			did, err := x.add(o, w)
			if err != nil {
				return err
			}
			moved = moved || did
		}
	}
	for _, o := range x.others {
		if err := x.receive(o); err != nil {
			return err
		}
	}
	return nil
}

// send puts a chunk of what this rank's host has into the queue, if there is room.
func (x *Exchange) send(o *other, w Work) (bool, error) {
	left := o.Hi - o.Lo - o.at
	if left == 0 {
		return false, nil
	}
	b, err := o.out.Begin()
	if b == nil || err != nil {
		return false, err
	}
	n := min(chunkBytes, left)
	b = b[:x.plan.Format.Bytes(n)]
	if values := x.values(b, n); o.narrow() && x.stamp.Weight == 0 {
		clear(b) // it counts for nothing
	} else {
		w.Part(values, o.Lo+o.at)
		o.encode(b, values, o.at, x.times(x.stamp))
	}
	s := x.stamp
	s.Tag = x.tag(o.at)
	if err := o.out.Commit(len(b), s, nil); err != nil {
		return false, err
	}
	o.at += n
	return true, nil
}

// add adds up a chunk, if it has come from all hosts, and sends the sum that it ends.
func (x *Exchange) add(o *owned, w Work) (bool, error) {
	if o.sent == len(o.sums) {
		return false, nil
	}
	s := &o.sums[o.sent]
	if o.at < s.hi {
		n := min(chunkBytes, s.hi-o.at)
		there, err := x.gather(o, n)
		if !there || err != nil {
			return false, err
		}
		if o.at == s.lo {
			b, err := s.out.Begin()
			if err != nil {
				return false, err
			}
			s.data = b[:x.plan.Sent(s.hi-s.lo)]
		}
		x.decodeParts(o, n)
		b := s.data[x.plan.Sent(o.at-s.lo):][:x.plan.Format.Bytes(n)]
		values := x.values(b, n)
		if o.has, err = w.Merge(values, o.Lo+o.at, x.parts); err != nil {
			return false, err
		}
		if o.narrow() && o.has == 0 {
			clear(b)
		} else {
			o.encode(b, values, o.at, x.once())
			o.decode(b, o.at, n, x.once())
		}
		for h := range o.from {
			if f := &o.from[h]; h != x.host {
				f.inbox.Release(f.held.Seq)
				f.has = false
			}
		}
		o.at += n
		clear(x.parts)
	}
	if o.at == s.hi {
		if err := s.out.Commit(len(s.data), rdma.Stamp{Clock: x.number, Weight: o.has}, nil); err != nil {
			return false, err
		}
		o.sent++
	}
	return true, nil
}

// gather puts the next chunk of all hosts into x.parts.
func (x *Exchange) gather(o *owned, n int) (all bool, err error) {
	all = true
	for h := range o.from {
		x.parts[h] = Part{Stamp: x.stamp}
		s := &o.from[h]
		if h == x.host {
			continue
		}
		if err := s.next(x.number); err != nil {
			return false, err
		}
		u := s.held
		switch {
		case !s.has || u.Clock != x.number:
			all = false
		case u.Kind != x.stamp.Kind:
			return false, ErrDiffers
		case u.Tag>>tagBits != x.tag(0)>>tagBits:
			return false, ErrDiffers // from what
		case len(u.Data) != x.plan.Format.Bytes(n) || u.Tag != x.tag(o.at):
			return false, say.Errorf(rdma.ErrCorrupt, "exchange %d: rank %d sent %d bytes of those at %d, expected %d at %d", x.number, o.By[h], len(u.Data), u.Tag&(1<<tagBits-1), x.plan.Format.Bytes(n), o.at)
		default:
			x.parts[h] = Part{u.Data, u.Stamp}
		}
	}
	return all, nil
}

// next takes the next chunk, and drops those of exchanges that were given up.
func (s *source) next(number uint64) (err error) {
	for !s.has || s.held.Clock < number {
		if s.has {
			s.inbox.Release(s.held.Seq)
		}
		if s.held, s.has, err = s.inbox.Next(); !s.has || err != nil {
			return err
		}
	}
	return nil
}

func (x *Exchange) receive(o *other) error {
	for i := range o.sums {
		s := &o.sums[i]
		if s.last.Clock == x.number {
			continue
		}
		u, ok, err := s.inbox.Next()
		if err != nil {
			return err
		}
		if !ok {
			continue
		}
		s.last = u
		if want := x.plan.Sent(s.hi - s.lo); len(u.Data) != want {
			return say.Errorf(rdma.ErrCorrupt, "exchange %d: rank %d sent a sum of %d bytes, expected %d", x.number, o.Owner(), len(u.Data), want)
		}
		for at := s.lo; at < s.hi && u.Clock == x.number && u.Weight > 0; at += chunkBytes {
			o.decode(u.Data[x.plan.Sent(at-s.lo):], at, min(chunkBytes, s.hi-at), x.once())
		}
	}
	return nil
}

// Late appends to late the ranks without which the last step could not go on, each
// once.
func (x *Exchange) Late(late []int) []int {
	add := func(rank int) {
		if !slices.Contains(late, rank) {
			late = append(late, rank)
		}
	}
	for _, o := range x.own {
		for h := range o.from {
			if s := &o.from[h]; o.sent < len(o.sums) && h != x.host && (!s.has || s.held.Clock != x.number) {
				add(o.By[h])
			}
		}
	}
	for _, o := range x.others {
		missing := o.at < o.Hi-o.Lo
		for i := range o.sums {
			missing = missing || o.sums[i].last.Clock != x.number
		}
		if missing {
			add(o.Owner())
		}
	}
	return late
}

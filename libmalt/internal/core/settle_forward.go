package core

import (
	"encoding/binary"
	"math"
	"slices"

	"malt/libmalt/reduce"
	"malt/rdma"
)

// item is what one member forwards to others: the result of a call, or an update of a rank
// that is left out.
type item struct {
	holder int
	to     []int
	call   uint64 // whose result it is; 0: it is an update
	stand  Stand
}

// forward plans to have an item forwarded, if a member needs it.
func (s *settling) forward(it item) {
	if len(it.to) == 0 {
		return
	}
	in := &s.in[it.holder]
	in.forwards = true
	switch {
	case it.holder == s.job.Rank:
		s.parcels = append(s.parcels, parcel{item: &it, kind: kindLast, to: it.to})
	case slices.Contains(it.to, s.job.Rank):
		in.items = append(in.items, it)
	}
}

// open makes the pieces of an item: a header, with its length in front, and the data. false:
// a call is inside the object.
func (s *settling) open(p *parcel) bool {
	it := p.item
	b := make([]byte, 8)
	if it.call > 0 {
		b = s.last.header(b, s.view, s.job.Size)
		p.pieces = append([][]byte{b}, s.last.pieces...)
	} else {
		u, ok := s.held(it)
		if !ok {
			return false
		}
		for _, v := range []uint64{u.Clock, u.Age, u.Tag, uint64(u.Kind), math.Float64bits(u.Weight), u.Seq, uint64(len(u.Data))} {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		p.pieces = [][]byte{b, u.Data}
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-8))
	p.pieces[0], p.item = b, nil
	return true
}

// held is the update that it is about: none, where this rank has closed the object since.
func (s *settling) held(it *item) (u rdma.Update, ok bool) {
	m := s.member(it.stand.ID)
	if m == nil {
		return u, true
	}
	if u = m.counted[it.stand.Rank].given; u.Data != nil && u.Clock == it.stand.Folded {
		return u, true
	}
	body, ok := m.Body.(Lockstep)
	if !ok {
		return u, true
	}
	if !s.inside(m) {
		if !m.Gate.Borrow() {
			return u, false
		}
		defer m.Gate.GiveBack()
	}
	return body.Held(it.stand.Rank, it.stand.Folded), true
}

// take takes what is forwarded to this rank. last: the item is complete.
func (s *settling) take(in *incoming, b []byte, last bool) error {
	if len(in.items) == 0 {
		return errSettling
	}
	it := &in.items[0]
	for len(b) > 0 {
		switch want := 8; {
		case !in.headed:
			if len(in.head) >= 8 {
				want += int(min(binary.LittleEndian.Uint64(in.head), 1<<32))
			}
			n := min(len(b), want-len(in.head))
			in.head, b = append(in.head, b[:n]...), b[n:]
			if len(in.head) < want || want == 8 {
				continue
			}
			in.headed = true
			var err error
			if in.dst, err = s.room(in, it); err != nil {
				return err
			}
		case in.unwanted:
			b = nil
		case len(in.dst) == 0:
			return errSettling
		default:
			n := reduce.Copy(in.dst[0], b)
			in.dst[0], b = in.dst[0][n:], b[n:]
		}
		for len(in.dst) > 0 && len(in.dst[0]) == 0 {
			in.dst = in.dst[1:]
		}
	}
	if !last {
		return nil
	}
	if !in.headed || len(in.dst) > 0 {
		return errSettling
	}
	if m := s.member(it.stand.ID); it.call == 0 && m != nil && !in.unwanted {
		m.counted[it.stand.Rank] = counted{it.stand.Folded, in.update}
	} else if it.call > 0 && s.given != nil {
		s.given.whole = true
	}
	in.items, in.head, in.headed, in.unwanted = in.items[1:], nil, false, false
	return nil
}

// room is where the data of an item go that follow its header, which has come.
func (s *settling) room(in *incoming, it *item) ([][]byte, error) {
	b := in.head[8:]
	if it.call > 0 {
		if in.unwanted = s.call.number() != it.call; in.unwanted { // it has been given up
			return nil, nil
		}
		given, lengths, err := readOutcome(b, s.view, s.job.Size)
		if err != nil {
			return nil, err
		}
		given.at, s.given = it.call, given
		return s.call.sink.Give(s.call, given.view.Ranks, lengths)
	}
	if len(b) != 7*8 {
		return nil, errSettling
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	in.update = rdma.Update{Stamp: rdma.Stamp{Clock: at(0), Age: at(1), Tag: at(2), Kind: uint16(at(3)), Weight: math.Float64frombits(at(4))}, Seq: at(5)}
	in.unwanted = in.update.Clock != it.stand.Folded
	if at(6) > 1<<47 {
		return nil, errSettling
	}
	var err error
	if in.update.Data, err = s.job.Room(it.holder, at(6)); err != nil || len(in.update.Data) == 0 {
		return nil, err
	}
	return [][]byte{in.update.Data}, nil
}

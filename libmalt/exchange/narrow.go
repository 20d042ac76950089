package exchange

import (
	"malt/libmalt/narrow"
	"malt/rdma"
)

// narrowed is what a rank keeps of a segment whose values travel in fewer bytes. It sends their
// difference from the last result, which is the same on all hosts. The loss by rounding is sent with the
// next exchange. The zero value is for values that travel as they are.
type narrowed struct {
	format narrow.Format
	result []byte // of the last exchange
	rest   []byte // lost by what this rank has sent
}

func (x *Exchange) narrow(s Segment) narrowed {
	if x.plan.Format.Kind == narrow.Exact {
		return narrowed{}
	}
	if x.room == nil {
		x.room, x.rooms = make([]byte, chunkBytes), make([][]byte, len(x.plan.Hosts))
		for h := range x.rooms {
			x.rooms[h] = make([]byte, chunkBytes)
		}
	}
	return narrowed{x.plan.Format, make([]byte, s.Hi-s.Lo), make([]byte, s.Hi-s.Lo)}
}

func (s *narrowed) narrow() bool { return s.format.Kind != narrow.Exact }

func (s *narrowed) encode(dst, values []byte, at int, times float64) {
	if to := at + len(values); s.narrow() {
		s.format.Encode(dst, values, s.result[at:to], s.rest[at:to], times)
	}
}

// decode makes what was sent for n bytes the result.
func (s *narrowed) decode(sent []byte, at, n int, times float64) {
	if s.narrow() {
		s.format.Decode(s.result[at:at+n], sent, s.result[at:at+n], times)
	}
}

// sum is the result of some bytes, which was sent as data.
func (s *narrowed) sum(c span, data []byte) []byte {
	if s.narrow() {
		return s.result[c.lo:c.hi]
	}
	return data
}

// values is where n bytes of the array are put that are sent in b: there, if as they are. What lies
// between two arrays is 0.
func (x *Exchange) values(b []byte, n int) []byte {
	if x.plan.Format.Kind == narrow.Exact {
		return b
	}
	clear(x.room[:n])
	return x.room[:n]
}

// decodeParts makes values of what the other hosts have sent for the next n bytes.
func (x *Exchange) decodeParts(o *owned, n int) {
	for h := range x.parts {
		if p := &x.parts[h]; o.narrow() && p.Data != nil {
			o.format.Decode(x.rooms[h][:n], p.Data, o.result[o.at:o.at+n], x.times(p.Stamp))
			p.Data = x.rooms[h][:n]
		}
	}
}

// base makes values differences from the last result, if all of it is there. It is on
// all ranks, or those who have it find that parts differ (tag): all give that exchange up, and
// the one after it begins from zeros.
func (x *Exchange) base(mean bool) {
	if x.plan.Format.Kind == narrow.Exact {
		return
	}
	x.relative, x.based = mean, x.number
	lacks := !x.Complete()
	for _, o := range x.own {
		lacks = lacks || o.has == 0
	}
	for _, o := range x.others {
		for _, s := range o.sums {
			lacks = lacks || s.last.Weight == 0
		}
	}
	if !lacks {
		return
	}
	x.based = 0
	for _, o := range x.own {
		clear(o.result)
		clear(o.rest)
	}
	for _, o := range x.others {
		clear(o.result)
		clear(o.rest)
	}
}

// once is by how many results values are smaller when they are sent.
func (x *Exchange) once() float64 {
	if x.relative {
		return 1
	}
	return 0
}

// times is the same of a part.
func (x *Exchange) times(part rdma.Stamp) float64 { return x.once() * float64(max(1, part.Age)) }

// tagBits of a tag are where the part lies, the others from what its values differ.
const tagBits = 40

func (x *Exchange) tag(at int) uint64 { return uint64(at) | x.based<<tagBits }

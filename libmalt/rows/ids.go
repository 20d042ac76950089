package rows

import (
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"malt/internal/say"
	"malt/rdma"
)

// mix is a bijection, the finaliser of MurmurHash3: whatever ids a program takes, equal ranges of
// mixed ids are about equally full.
func mix(id uint64) uint64 {
	id = (id ^ id>>33) * 0xff51afd7ed558ccd
	id = (id ^ id>>33) * 0xc4ceb9fe1a85ec53
	return id ^ id>>33
}

// span is one of so many equal parts of all mixed ids.
type span struct{ number, parts uint64 }

var everything = span{0, 1}

// part is part j of k of s.
func (s span) part(j, k int) span { return span{s.number*uint64(k) + uint64(j), s.parts * uint64(k)} }

// first is its lowest id, last the highest.
func (s span) first() uint64 {
	low, _ := bits.Div64(s.number, 0, s.parts)
	return low
}

func (s span) last() uint64 {
	if s.number+1 == s.parts {
		return math.MaxUint64
	}
	return span{s.number + 1, s.parts}.first() - 1
}

// set is mixed ids, ascending, and how many rows there are of each; nil: that does not matter.
type set struct {
	ids    []uint64
	counts []uint64
}

func (s set) cut(lo, hi int) set {
	if s.counts == nil {
		return set{ids: s.ids[lo:hi]}
	}
	return set{s.ids[lo:hi], s.counts[lo:hi]}
}

// bounds are where k parts of s, which lies within in, begin and end.
func (s set) bounds(in span, k int) []int {
	list := make([]int, k+1)
	for j := 1; j < k; j++ {
		list[j], _ = slices.BinarySearch(s.ids, in.part(j, k).first())
	}
	list[k] = len(s.ids)
	return list
}

// setOf is the ids of a program, and for each of these its place in the set.
func setOf(list []uint64, counted bool) (s set, places []uint32) {
	type place struct {
		id uint64
		at uint32
	}
	sorted := make([]place, len(list))
	for i, id := range list {
		sorted[i] = place{mix(id), uint32(i)}
	}
	slices.SortFunc(sorted, func(a, b place) int { return cmp.Compare(a.id, b.id) })
	places = make([]uint32, len(list))
	if counted {
		s.counts = []uint64{}
	}
	for i, p := range sorted {
		if i == 0 || sorted[i-1].id != p.id {
			s.ids = append(s.ids, p.id)
			if counted {
				s.counts = append(s.counts, 0)
			}
		}
		if places[p.at] = uint32(len(s.ids) - 1); counted {
			s.counts[len(s.ids)-1]++
		}
	}
	return s, places
}

// union is what is in any of the sets.
func union(sets []set) set {
	if len(sets) == 1 {
		return sets[0]
	}
	half := len(sets) / 2
	a, b := union(sets[:half]), union(sets[half:])
	counted := a.counts != nil
	u := set{ids: make([]uint64, 0, len(a.ids)+len(b.ids))}
	if counted {
		u.counts = make([]uint64, 0, cap(u.ids))
	}
	i, j := 0, 0
	for i < len(a.ids) && j < len(b.ids) {
		x, y, n := a.ids[i], b.ids[j], uint64(0)
		if x <= y {
			if counted {
				n = a.counts[i]
			}
			i++
		}
		if y <= x {
			if counted {
				n += b.counts[j]
			}
			j++
		}
		u.ids = append(u.ids, min(x, y))
		if counted {
			u.counts = append(u.counts, n)
		}
	}
	a, b = a.cut(i, len(a.ids)), b.cut(j, len(b.ids))
	u.ids = append(append(u.ids, a.ids...), b.ids...)
	u.counts = append(append(u.counts, a.counts...), b.counts...)
	return u
}

// places are those of the ids of a set in one that has them all.
func (s set) places(of set) []uint32 {
	list, at := make([]uint32, len(of.ids)), 0
	for i, id := range of.ids {
		for s.ids[at] < id {
			at++
		}
		list[i] = uint32(at)
	}
	return list
}

// encode appends s, which lies within in: its number of ids, the gaps between them, and the
// counts if there are any.
func (s set) encode(b []byte, in span) []byte {
	b = binary.AppendUvarint(b, uint64(len(s.ids)))
	next := in.first()
	for _, id := range s.ids {
		b = binary.AppendUvarint(b, id-next)
		next = id + 1
	}
	for _, n := range s.counts {
		b = binary.AppendUvarint(b, n)
	}
	return b
}

// decode reads what encode has written, and returns what is behind it.
func decode(b []byte, in span, counted bool) (s set, rest []byte, err error) {
	next := func() (n uint64) {
		n, length := binary.Uvarint(b)
		if length <= 0 {
			err = say.Errorf(rdma.ErrCorrupt, "a list of ids ends within a number")
			return 0
		}
		b = b[length:]
		return n
	}
	number := next()
	if err == nil && number > uint64(len(b)) { // each takes a byte at least
		err = say.Errorf(rdma.ErrCorrupt, "a list of %d ids has %d bytes", number, len(b))
	}
	if err != nil {
		return set{}, nil, err
	}
	least, last, full := in.first(), in.last(), false
	s.ids = make([]uint64, number)
	for i := range s.ids {
		gap := next()
		if err == nil && (full || gap > last-least) {
			err = say.Errorf(rdma.ErrCorrupt, "a list of ids leaves its range")
		}
		if err != nil {
			return set{}, nil, err
		}
		s.ids[i] = least + gap
		least, full = s.ids[i]+1, s.ids[i] == last
	}
	if counted {
		s.counts = make([]uint64, number)
		for i := range s.counts {
			if s.counts[i] = next(); err == nil && s.counts[i] == 0 {
				err = say.Errorf(rdma.ErrCorrupt, "no row has an id of a list")
			}
		}
	}
	return s, b, err
}

package exchange

import (
	"slices"

	"malt/libmalt/narrow"
)

// Segment is bytes that one rank of each host handles.
type Segment struct {
	Lo, Hi int
	Host   int   // that owns it
	By     []int // by host: the rank that handles it
}

// Owner is the rank that adds up.
func (s Segment) Owner() int { return s.By[s.Host] }

// span is bytes of a segment.
type span struct{ lo, hi int }

// sums are the bytes whose sums are sent by themselves: whole chunks, and not more
// than so many.
func (s Segment) sums() (all []span) {
	bytes := s.Hi - s.Lo
	chunks := (bytes + chunkBytes - 1) / chunkBytes
	n := min(chunks, mostSums)
	for i := range n {
		all = append(all, span{cutAt(chunks, i, n) * chunkBytes, min(cutAt(chunks, i+1, n)*chunkBytes, bytes)})
	}
	return all
}

// Plan is who handles what, a pure function of its arguments. It has no segment
// without bytes.
type Plan struct {
	Segments []Segment
	Hosts    [][]int
	Format   narrow.Format // in which values travel
}

// Sent is how many bytes so many bytes of the array are sent in. Each chunk is written by itself.
func (p Plan) Sent(bytes int) int {
	return bytes/chunkBytes*p.Format.Bytes(chunkBytes) + p.Format.Bytes(bytes%chunkBytes)
}

// NewPlan cuts so many bytes at multiples of cut. hosts are the ranks of each.
func NewPlan(bytes, cut int, hosts [][]int) Plan {
	p := Plan{Hosts: hosts}
	units := (bytes + cut - 1) / cut
	for host := range hosts {
		lo, hi := cutAt(units, host, len(hosts)), cutAt(units, host+1, len(hosts))
		var cuts []int
		for _, ranks := range hosts {
			for i := range len(ranks) + 1 {
				cuts = append(cuts, lo+cutAt(hi-lo, i, len(ranks)))
			}
		}
		slices.Sort(cuts)
		cuts = slices.Compact(cuts)
		for i, from := range cuts[:len(cuts)-1] {
			s := Segment{Lo: from * cut, Hi: min(cuts[i+1]*cut, bytes), Host: host, By: make([]int, len(hosts))}
			for h, ranks := range hosts {
				for j, r := range ranks {
					if from >= lo+cutAt(hi-lo, j, len(ranks)) && from < lo+cutAt(hi-lo, j+1, len(ranks)) {
						s.By[h] = r
					}
				}
			}
			p.Segments = append(p.Segments, s)
		}
	}
	return p
}

// cutAt is where part i of n begins.
func cutAt(units, i, n int) int { return units * i / n }

// What the cost of an exchange is reckoned with: between two hosts on a good
// network, or on one machine with namespaces.
const (
	hopNanos     = 100_000 // until what was sent is acted upon
	messageNanos = 10_000  // to send a message and to take it in, whatever its length
	byteNanos    = 1       // of the bytes that leave a host
)

// Pays tells whether an exchange takes less time than that every rank sends all it
// has to each rank on another host, in a single hop. It is the same on all ranks.
// Where some rank would own nothing it never does.
func (p Plan) Pays() bool {
	bytes, ranks, most := 0, 0, 0
	owners := map[int]bool{}
	for _, s := range p.Segments {
		bytes += s.Hi - s.Lo
		owners[s.Owner()] = true
	}
	for _, h := range p.Hosts {
		ranks += len(h)
		most = max(most, len(h))
	}
	if len(owners) < ranks || len(p.Hosts) < 2 {
		return false
	}
	hosts := len(p.Hosts)
	hops := 2
	if most > 1 {
		hops = 3 // all ranks of a host must be known to have what they need
	}
	direct := hopNanos + most*(ranks-most)*(messageNanos+bytes*byteNanos)
	staged := hops*hopNanos + 2*(hosts-1)*most*messageNanos + 2*(hosts-1)*p.Sent(bytes/hosts)*byteNanos
	return staged < direct
}

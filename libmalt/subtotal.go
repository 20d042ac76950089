package libmalt

import (
	"malt/libmalt/reduce"
)

// Where ranks are on several hosts, a fold over all of them adds up those of each
// host first, in the order of ranks, and then what the hosts have, in the order of
// their lowest ranks. So it comes to the same bits whether all updates are at hand,
// or each host sends what its ranks have together.
//
// A subtotal is what one host has, or one rank. Without weights it is a sum, so that a
// mean is divided once, at the end. With weights that differ within the host it is
// their mean, rounded to the element type, and weighs as much as they do together.
type subtotal struct {
	data   []byte
	count  int     // data is the sum over so many ranks; 0: their weighted mean
	weight float64 // of each of these ranks; of all together where count is 0
}

// adder has what a fold of subtotals needs, kept from one to the next.
type adder struct {
	parts   []subtotal
	srcs    [][]byte
	weights []float64
	rooms   [][]byte   // by host: what its ranks have together, of one block
	terms   []subtotal // ranks of one host
}

// room is memory of n bytes for what host has.
func (a *adder) room(host, n int) []byte {
	for len(a.rooms) <= host {
		a.rooms = append(a.rooms, nil)
	}
	if len(a.rooms[host]) < n {
		a.rooms[host] = make([]byte, n)
	}
	return a.rooms[host][:n]
}

// ofHost adds up the ranks in a.terms, which lie at off, into dst. Those without
// weight take no part in a mean.
func (a *adder) ofHost(op reduce.Op, runs []run, off int, dst []byte) subtotal {
	sum := a.together(op)
	a.srcs, a.weights = a.srcs[:0], a.weights[:0]
	for _, t := range a.terms {
		if t.weight > 0 || !op.Weighted() {
			a.srcs, a.weights = append(a.srcs, t.data), append(a.weights, t.weight)
		}
	}
	switch {
	case sum.count == 0:
		foldRuns(op, runs, off, dst, a.srcs, a.weights, 0)
	case op.Weighted():
		foldRuns(reduce.Sum, runs, off, dst, a.srcs, nil, 0)
	default:
		foldRuns(op, runs, off, dst, a.srcs, nil, 0)
	}
	clear(a.srcs)
	sum.data = dst
	return sum
}

// together is what the ranks in a.terms will be when they have been added up.
func (a *adder) together(op reduce.Op) (sum subtotal) {
	if !op.Weighted() {
		return subtotal{count: len(a.terms), weight: 1}
	}
	total, same := 0.0, true
	for _, t := range a.terms {
		if t.weight > 0 {
			same = same && (sum.count == 0 || t.weight == sum.weight)
			sum.weight = t.weight
			sum.count++
			total += t.weight
		}
	}
	if !same {
		return subtotal{weight: total}
	}
	return sum
}

// ofAll folds a.parts, which lie at off, into dst, which may be one of them. It
// tells whether there was anything to fold: where nothing weighs anything, dst stays
// as it is.
func (a *adder) ofAll(op reduce.Op, runs []run, off int, dst []byte) bool {
	a.srcs, a.weights = a.srcs[:0], a.weights[:0]
	defer func() { clear(a.srcs) }()
	if !op.Weighted() {
		for _, p := range a.parts {
			a.srcs = append(a.srcs, p.data)
		}
		foldRuns(op, runs, off, dst, a.srcs, nil, 0)
		return len(a.srcs) > 0
	}
	n, weight, same := 0, 0.0, true
	for _, p := range a.parts {
		if p.weight == 0 {
			continue
		}
		same = same && p.count > 0 && (weight == 0 || p.weight == weight)
		n, weight = n+p.count, p.weight
		a.srcs = append(a.srcs, p.data)
	}
	if same {
		if n > 0 {
			foldRuns(op, runs, off, dst, a.srcs, nil, n)
		}
		return n > 0
	}
	a.srcs = a.srcs[:0]
	for host, p := range a.parts {
		if p.weight == 0 {
			continue
		}
		if p.count > 1 {
			mean := a.room(host, len(dst))
			one := [1][]byte{p.data}
			foldRuns(op, runs, off, mean, one[:], nil, p.count)
			p.data, p.weight = mean, p.weight*float64(p.count)
		}
		a.srcs, a.weights = append(a.srcs, p.data), append(a.weights, p.weight)
	}
	foldRuns(op, runs, off, dst, a.srcs, a.weights, 0)
	return true
}

// foldByHost is fold in that order, of the updates that a gather holds.
func (v *Vector) foldByHost(op reduce.Op, updates []Update) {
	a := &v.adder
	for lo := 0; lo < len(v.data); lo += blockBytes {
		to := min(lo+blockBytes, len(v.data))
		a.parts = a.parts[:0]
		for host, ranks := range v.w.hosts.ranks {
			a.terms = a.terms[:0]
			for _, r := range ranks {
				if r == v.w.rank {
					a.terms = append(a.terms, subtotal{v.data[lo:to], 1, v.weight})
				}
				for _, u := range updates {
					if u.Rank == r {
						a.terms = append(a.terms, subtotal{u.Data[lo:to], 1, u.Weight})
					}
				}
			}
			switch len(a.terms) {
			case 0:
			case 1:
				a.parts = append(a.parts, a.terms[0])
			default:
				a.parts = append(a.parts, a.ofHost(op, v.runs, lo, a.room(host, to-lo)))
			}
		}
		a.ofAll(op, v.runs, lo, v.data[lo:to])
	}
	clear(a.parts)
	clear(a.terms)
}

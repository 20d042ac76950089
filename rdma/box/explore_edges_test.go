//go:build explore

package box

import (
	"fmt"
	"slices"
	"testing"

	"malt/internal/explore"
	"malt/rdma"
	"malt/rdma/internal/mem"
)

// edges is a case of queues of which the edges begin and end: ranks that each send an
// update and gather, so many times, while the view goes on by itself. What is an edge is
// the same on all ranks in a view, and each goes over to it at its next step.
type edges struct {
	depth, updates int
	graphs         [][]string // by view: the receivers of each rank, as digits
	kills          int
	preemptions    int
	falls          int // rank 0 sends no more after so many updates, and gathers on; 0: never
}

// peer is a rank of a case.
type peer struct {
	t    *explore.Thread
	me   int
	c    *edges
	rs   ranks
	view *mem.Word
	gen  uint64
	w    *small
	in   []*Reader // by sender
	has  []uint64  // by sender: the update that is held, 0: none; none if it was not for this rank
	log  []byte    // by rank and update: 1 << receiver of what was sent, and what was folded
}

const none = ^uint64(0)

// other is the number of rank among the readers of from.
func other(rank, from int) int {
	if rank > from {
		return rank - 1
	}
	return rank
}

func (p *peer) sent(from int, n uint64) *byte   { return &p.log[16*from+int(n)] }
func (p *peer) folded(from int, n uint64) *byte { return &p.log[16*from+8+int(n)] }

func (p *peer) sends(from, to int) bool {
	return slices.Contains([]byte(p.c.graphs[p.gen-1][from]), byte('0'+to))
}

func (p *peer) receivers() (to []int) {
	for r := range p.in {
		if r != p.me && p.sends(p.me, r) {
			to = append(to, other(r, p.me))
		}
	}
	return to
}

// adopt goes over to a newer view.
func (p *peer) adopt() {
	gen := p.view.Load()
	if gen == p.gen {
		return
	}
	p.gen = gen
	p.w.w.Serve(gen, p.receivers())
	for s, r := range p.in {
		if s != p.me && p.sends(s, p.me) {
			r.Begin(gen)
		}
	}
}

func (p *peer) at(label string, n uint64) {
	if !p.t.Replaying() {
		p.t.At(label, n, p.gen, p.has, p.w.writer(), p.in)
	}
}

func (p *peer) run() {
	last := uint64(p.c.updates)
	for n := uint64(1); n <= last; n++ {
		if p.me != 0 || p.c.falls == 0 || n <= uint64(p.c.falls) {
			p.scatter(n)
		}
		clear(p.has)
		p.rs.wait(p.t, p.me, func() bool {
			p.at("gather", n)
			p.adopt()
			return p.gather(n)
		})
		for s, r := range p.in {
			switch {
			case s == p.me:
			case p.has[s] != 0 && r.reads:
				r.Release(n)
			case !r.reads:
				r.Pass(false)
			}
		}
	}
	p.at("leave", last)
	p.w.w.Close()
	for s, r := range p.in {
		if s != p.me {
			r.Close()
		}
	}
}

// scatter sends update n.
func (p *peer) scatter(n uint64) {
	p.rs.wait(p.t, p.me, func() bool {
		p.at("scatter", n)
		p.adopt()
		b, err := p.w.w.Begin()
		if err != nil {
			p.t.Fail("%v", err)
		}
		return b != nil
	})
	var to []int
	set := byte(0)
	p.w.w.Serve(p.gen, p.receivers())
	for _, r := range p.receivers() {
		if p.w.w.Served(r) {
			to = append(to, r)
			if r >= p.me {
				r++
			}
			set |= 1 << r
		}
	}
	p.w.write(p.t, n, to, false)
	*p.sent(p.me, n) = set
}

// gather takes update n of each sender, and tells whether that is all.
func (p *peer) gather(n uint64) bool {
	all := true
	for s, r := range p.in {
		if s == p.me || !r.reads || p.has[s] != 0 {
			continue
		}
		if !p.sends(s, p.me) && r.Over(p.gen) {
			continue
		}
		_, gone := r.Clock()
		h, b, ok, err := r.Next()
		switch {
		case err != nil:
			p.t.Fail("update %d of rank %d: %v", n, s, err)
		case !ok:
			all = all && gone != nil
		case h.Seq != n:
			p.t.Fail("update %d of rank %d in gather %d", h.Seq, s, n)
		case b == nil:
			p.has[s] = none
		default:
			p.has[s] = n
			check(p.t, h, b)
			*p.folded(s, n) |= 1 << p.me
		}
	}
	return all
}

func (c edges) setup() func(x *explore.Exec) {
	k := len(c.graphs[0])
	l := layoutOf(rdma.Spec{Mode: rdma.Queue(c.depth)}, k-1)
	return func(x *explore.Exec) {
		rs := ranks{x.Memory(16 * k), false}
		view := mem.WordAt(x.Memory(8), 0)
		view.Store(1)
		log := x.Memory(16 * k)
		x.Names(func(word func([]byte, string)) {
			for r := range k {
				word(rs.words[16*r:], fmt.Sprintf("bell of rank %d", r))
				word(rs.words[16*r+8:], fmt.Sprintf("death of rank %d", r))
			}
		})
		all := make([]*peer, k)
		for me := range all {
			p := &peer{me: me, c: &c, rs: rs, view: view, gen: 1, has: make([]uint64, k), in: make([]*Reader, k), log: log}
			number := func(r int) int { // rank r in this box is the sender, or its reader r-1
				switch {
				case r == 0:
					return me
				case r-1 >= me:
					return r
				}
				return r - 1
			}
			p.w = newSmall(x, l, env{
				state: func(r int) error { return rs.state(number(r)) },
				ring:  func(bell uint64) { rs.set(number(int(bell)-1), 1) },
			})
			all[me] = p
			rs.rest(me)
		}
		for me, p := range all {
			p.w.w.Serve(1, p.receivers())
			for s, from := range all {
				if s != me {
					p.in[s] = from.w.rs[other(me, s)]
					if p.sends(s, me) {
						p.in[s].Begin(1)
					}
				}
			}
		}
		var threads []*explore.Thread
		for me, p := range all {
			p.t = x.Go(fmt.Sprint("rank ", me), func(*explore.Thread) { p.run() })
			threads = append(threads, p.t)
		}
		x.Go("views", func(t *explore.Thread) {
			for gen := 2; gen <= len(c.graphs); gen++ {
				t.At("view", gen)
				view.Store(uint64(gen))
				for r := range k {
					rs.set(r, 1)
				}
			}
		}).Immune()
		if c.kills > 0 {
			rs.kernel(x, threads)
		}
		x.Final(func(report func(string, ...any)) { c.kept(all, report) })
	}
}

// kept: what was sent to a rank that has come to it is folded there, once, and there alone.
func (c *edges) kept(all []*peer, report func(string, ...any)) {
	for s, from := range all {
		for n := uint64(1); n <= uint64(c.updates); n++ {
			for r, to := range all {
				sent, folded := *from.sent(s, n)>>r&1, *from.folded(s, n)>>r&1
				if sent != folded && !to.t.Dead() && !from.t.Dead() {
					report("update %d of rank %d was sent to rank %d %d times, and folded %d times", n, s, r, sent, folded)
				}
			}
		}
	}
}

// Edges that begin and end: an update is folded if and only if it was sent, at the gather
// of its number, and no rank waits for ever.
func TestExploreEdges(t *testing.T) {
	for _, c := range []struct {
		name  string
		large bool
		edges
	}{
		{"begins", false, edges{depth: 1, updates: 3, graphs: [][]string{{"", ""}, {"1", ""}}, preemptions: 2}},
		{"ends", false, edges{depth: 1, updates: 3, graphs: [][]string{{"1", ""}, {"", ""}}, preemptions: 2}},
		{"begins against another", false, edges{depth: 1, updates: 3, graphs: [][]string{{"1", ""}, {"1", "0"}}, preemptions: 2}},
		{"turns round", false, edges{depth: 1, updates: 3, graphs: [][]string{{"1", ""}, {"", "0"}}, preemptions: 2}},
		{"ends and begins", false, edges{depth: 1, updates: 3, graphs: [][]string{{"1", ""}, {"", ""}, {"1", ""}}, preemptions: 2}},
		{"ends, begins and ends", true, edges{depth: 1, updates: 4, graphs: [][]string{{"1", ""}, {"", ""}, {"1", ""}, {"", ""}}, preemptions: 3}},
		{"one that sends no more", false, edges{depth: 1, updates: 3, graphs: [][]string{{"1", ""}, {"", "0"}}, preemptions: 2, falls: 1}},
		{"depth 2", false, edges{depth: 2, updates: 4, graphs: [][]string{{"", ""}, {"1", ""}, {"", ""}}, preemptions: 2}},
		{"a death", false, edges{depth: 1, updates: 2, graphs: [][]string{{"1", ""}, {"", "0"}}, kills: 1, preemptions: 1}},
		{"three ranks", true, edges{depth: 1, updates: 2, graphs: [][]string{{"1", "2", "0"}, {"2", "0", "1"}}, preemptions: 1}},
	} {
		explore.Case(t, c.name, c.large, func(t *testing.T) { must(t, explore.Options{Kills: c.kills, Preemptions: c.preemptions}, c.setup()) })
	}
}

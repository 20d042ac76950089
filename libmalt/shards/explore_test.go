//go:build explore

package shards

import (
	"fmt"
	"slices"
	"testing"

	"malt/graphs"
	"malt/internal/explore"
	"malt/libmalt/engine"
)

// The decisions of all ranks of a job, in every order of their steps. A step is a scatter, a push
// that is made, announced or added, a sum that is published, by the keeper or by a worker that passes
// it on, or taken, a rank that is found in a collective call, a gather that is done, and
// what ends a rank. That is more than an engine does, which makes passes.
//
// Besides its clocks each sum has what is really in it: how often each rank's changes, of which
// there is one in each part at each clock. That is held against the clocks.

// world is one state.
type world struct {
	ranks []rank
}

type rank struct {
	c      *Core
	clock  uint64
	waits  bool // in a gather
	away   bool // in a collective call
	gone   bool // it has left, or died
	dead   bool
	over   bool    // its calls are
	broken string  // by a gather
	parts  []piece // by part
}

// piece is what a rank has of a part, and its boxes.
type piece struct {
	last     uint64 // changes that have not been pushed
	way      uint64 // those of the last push, until it is in the view
	sum      []uint64
	seq      int // of the box of its pushes
	at       reach
	pushed   uint64 // changes
	said     uint64 // the clock of the box
	sums     int    // of the box of its sums
	has      []reach
	contents []uint64
	took     []int // by rank: of its box
}

func (p *piece) clone() {
	p.sum, p.has, p.contents, p.took = slices.Clone(p.sum), slices.Clone(p.has), slices.Clone(p.contents), slices.Clone(p.took)
}

type game struct {
	graph string
	above [][]int   // by part: see graphs.Above
	via   [][][]int // by part and rank
	syncs []int     // of each rank
	slack uint64
	ends  []string // of each rank after its syncs: "" it stays, away, close, flee: close, and leave though others need it
	kills int
	lives int // ranks below that do not die, and the others go on without one that does; 0: a death ends the job
}

func (g *game) start() world {
	w, n := world{}, len(g.syncs)
	graph, err := graphs.Parse(g.graph, n)
	must(err)
	for q := range graph.Keepers() {
		g.above, g.via = append(g.above, graph.Above(q)), append(g.via, make([][]int, n))
		for r := range n {
			g.via[q][r] = through(g.above[q], r)
		}
	}
	for r := range n {
		below := make([][]int, len(g.above))
		for q := range below {
			for x := range n {
				if slices.Contains(g.via[q][x], r) {
					below[q] = append(below[q], x)
				}
			}
		}
		k := rank{c: NewCore(r, n, below)}
		for range g.above {
			k.parts = append(k.parts, piece{sum: make([]uint64, n), has: make([]reach, n), contents: make([]uint64, n), took: make([]int, n)})
		}
		w.ranks = append(w.ranks, k)
	}
	return w
}

// with is w with a rank that may be changed.
func (w world) with(r int) (world, *rank) {
	n := world{slices.Clone(w.ranks)}
	k := &n.ranks[r]
	c := *k.c
	c.parts = slices.Clone(c.parts)
	for q := range c.parts {
		c.parts[q].has, c.parts[q].sent = slices.Clone(c.parts[q].has), slices.Clone(c.parts[q].sent)
	}
	k.c, k.parts = &c, slices.Clone(k.parts)
	for q := range k.parts {
		k.parts[q].clone()
	}
	return n, k
}

// until is for which changes of a rank to wait: those before its one collective call, if it is in it.
func (w world) until(r int) uint64 {
	switch k := &w.ranks[r]; {
	case k.dead:
		return 0
	case k.away:
		return 1
	}
	return engine.Here
}

// left tells whether a rank has left, and has not died.
func (w world) left(r int) bool { return w.ranks[r].gone && !w.ranks[r].dead }

func must(err error) {
	if err != nil {
		panic(err)
	}
}

const (
	dies = iota
	addsAPush
	hears
	pushes
	announces
	publishes
	takes
	leaves
	scatters
	gathers
	fails
	ends
)

func (g *game) next(w world, to func(step uint64, failure bool, next world)) {
	kills := 0
	for _, k := range w.ranks {
		if k.dead {
			kills++
		}
	}
	for r := range w.ranks {
		k := &w.ranks[r]
		if k.gone {
			continue
		}
		step := func(what, other int, failure bool, change func(k *rank)) {
			n, k := w.with(r)
			change(k)
			to(uint64((what*64+other)*64+r), failure, n)
		}
		if kills < g.kills && r >= g.lives {
			step(dies, 0, true, func(k *rank) { k.dead, k.gone = true, true })
		}
		for q := range k.parts {
			if via := g.via[q][r]; len(via) > 1 && slices.ContainsFunc(via[:len(via)-1], w.left) {
				w, k = w.with(r)
				k.c.cut(q)
			}
		}
		busy := false // there is something to take or to send: an engine does that first
		said := true  // the keepers can see all clocks: so they can before this rank goes into a collective call
		for q := range k.parts {
			if q != r {
				above := g.above[q][r]
				if box := w.ranks[above].parts[q]; box.sums > k.parts[q].took[above] {
					busy = true
					step(takes, q, false, func(k *rank) {
						p := &k.parts[q]
						must(k.c.take(q, box.has))
						p.took[above], p.sum = box.sums, slices.Clone(box.contents)
						if k.c.seen(q) {
							p.way = 0
						}
					})
				}
			} else {
				for from := range w.ranks {
					box := w.ranks[from].parts[q]
					if from != r && box.seq > k.parts[q].took[from] {
						busy = true
						step(addsAPush, from, false, func(k *rank) {
							p := &k.parts[q]
							must(k.c.add(from, box.at))
							p.took[from] = box.seq
							p.sum[from] += box.pushed
						})
					}
					said := box.said
					if from == r {
						said = k.c.own.Clock
					}
					if from == r && said > k.c.parts[q].has[r].Clock {
						continue // it adds its own changes first
					}
					n, _ := w.with(r)
					now, was := &n.ranks[r].c.parts[q], k.c.parts[q]
					n.ranks[r].c.more(from, said, w.until(from))
					if now.hurry != was.hurry || now.has[from] != was.has[from] {
						busy = true
						to(uint64((hears*64+from)*64+r), false, n)
					}
				}
			}
			if k.c.due(q, w.until) {
				busy = true
				step(publishes, q, false, func(k *rank) {
					p := &k.parts[q]
					p.sums++
					p.has, p.contents = slices.Clone(k.c.parts[q].has), slices.Clone(p.sum)
					k.c.published(q)
				})
			}
			push, more := k.c.toPush(q, w.ranks[q].parts[q].took[r] == k.parts[q].seq)
			if push {
				busy, said = true, false
				step(pushes, q, false, func(k *rank) {
					p := &k.parts[q]
					if q == r {
						p.sum[r] += p.last
					} else {
						p.seq++
						p.at, p.said, p.pushed, p.way = k.c.own, k.c.own.Clock, p.last, p.last
					}
					p.last = 0
					must(k.c.pushed(q))
				})
			}
			if more && k.parts[q].said < k.c.own.Clock {
				busy, said = true, false
				step(announces, q, false, func(k *rank) { k.parts[q].said = k.c.own.Clock })
			}
		}
		switch {
		case k.over && k.c.own.Clock == closed:
			needed := k.c.Needed(nil, func(x int) bool { return w.ranks[x].gone })
			if !busy && (len(needed) == 0 || g.ends[r] == "flee") {
				step(leaves, 0, false, func(k *rank) { k.gone, k.broken = true, g.lost(w, r) })
			}
		case k.over:
		case !k.waits && k.clock < uint64(g.syncs[r]):
			step(scatters, 0, false, func(k *rank) {
				k.clock++
				k.waits = true
				k.c.Scattered(k.clock)
				for q := range k.parts {
					k.parts[q].last++
				}
			})
		case k.waits && g.cut(w, r):
			step(fails, 0, false, func(k *rank) {
				k.waits, k.over = false, true
				k.c.Lifted(closed)
			})
		case k.waits && len(k.c.Late(nil, k.clock-min(k.clock, g.slack), w.until)) == 0:
			step(gathers, 0, false, func(k *rank) { k.waits, k.broken = false, g.law(w, r) })
		case !k.waits && (said || g.ends[r] != "away"):
			step(ends, 0, false, func(k *rank) {
				k.over = true
				switch g.ends[r] {
				case "close", "flee":
					k.c.Lifted(closed)
				case "away":
					k.away = true
				}
			})
		}
	}
}

// law says what of the promise a gather of r breaks.
func (g *game) law(w world, r int) string {
	k := &w.ranks[r]
	for q := range k.parts {
		for j, n := range k.parts[q].sum {
			least := k.clock - min(k.clock, g.slack)
			if w.ranks[j].c.own.Clock == closed || w.ranks[j].away {
				least = min(least, w.ranks[j].clock)
			}
			switch {
			case j == r || w.ranks[j].dead:
			case n < min(k.clock, w.ranks[j].clock) && k.c.Age(k.clock, w.until) < k.clock-n:
				return fmt.Sprintf("rank %d at clock %d has %d changes of rank %d in part %d, and age %d", r, k.clock, n, j, q, k.c.Age(k.clock, w.until))
			case n < least:
				return fmt.Sprintf("rank %d has %d changes of rank %d in part %d after its gather at clock %d, slack %d", r, n, j, q, k.clock, g.slack)
			}
		}
	}
	return ""
}

// cut tells whether a rank has left, and not died, through which r has a part.
func (g *game) cut(w world, r int) bool {
	for q := range g.via {
		if slices.ContainsFunc(g.via[q][r], w.left) {
			return true
		}
	}
	return false
}

// lost says whose sum lacks changes of r, which leaves, or of another rank that has closed the vector, while r, which leaves,
// keeps it. The keeper can take a push at any time after it was made.
func (g *game) lost(w world, r int) string {
	for q := range g.above {
		for j := range w.ranks {
			n := w.ranks[q].parts[q].sum[j]
			if p := w.ranks[j].parts[q]; j != q && w.ranks[q].parts[q].took[j] != p.seq {
				n += p.pushed
			}
			if of := &w.ranks[j]; (j == r || q == r && of.c.own.Clock == closed && !of.dead) && !w.ranks[q].gone && n != of.clock {
				return fmt.Sprintf("rank %d leaves, and part %d has %d of %d changes of rank %d", r, q, n, of.clock, j)
			}
		}
	}
	return ""
}

func (g *game) bad(w world) string {
	for r := range w.ranks {
		k := &w.ranks[r]
		if k.broken != "" {
			return k.broken
		}
		for q := range k.parts {
			p := &k.parts[q]
			for j, n := range p.sum {
				if at := min(k.c.parts[q].has[j].Clock, w.ranks[j].clock); n != at {
					return fmt.Sprintf("rank %d has %d changes of rank %d in part %d, and clock %d", r, n, j, q, at)
				}
			}
			if n := p.sum[r] + p.way + p.last; n != k.clock && (q == r || k.c.own.Clock != closed) {
				return fmt.Sprintf("rank %d has %d of its own %d changes in part %d", r, n, k.clock, q)
			}
		}
	}
	return ""
}

func (g *game) key(b []byte, w world) []byte {
	for r := range w.ranks {
		k := &w.ranks[r]
		b = fmt.Append(b, k.clock, k.waits, k.away, k.gone, k.dead, k.over, k.c.own.Clock)
		for q := range k.parts {
			c, p := &k.c.parts[q], &k.parts[q]
			b = fmt.Append(b, *c, p.last, p.way, p.at, p.said, p.has, p.seq, p.sums, p.took, ";")
		}
	}
	return b
}

func TestExploreShards(t *testing.T) {
	for _, c := range []struct {
		name string
		game
	}{
		{"a server and two workers", game{graph: "shards:1", syncs: []int{0, 2, 2}, ends: []string{"away", "", ""}}},
		{"a server and two workers, slack", game{graph: "shards:1", syncs: []int{0, 3, 1}, slack: 1, ends: []string{"away", "", "away"}}},
		{"a server and three workers, one goes away", game{graph: "shards:1", syncs: []int{0, 1, 1, 0}, ends: []string{"away", "", "away", "close"}}},
		{"a server and two workers, all close", game{graph: "shards:1", syncs: []int{0, 2, 1}, slack: 2, ends: []string{"close", "close", "close"}}},
		{"a server that works, a death", game{graph: "shards:1", syncs: []int{1, 1, 1}, ends: []string{"", "", "close"}, kills: 1}},
		{"a server and two workers, of which one dies", game{graph: "shards:1", syncs: []int{0, 2, 2}, ends: []string{"away", "", ""}, kills: 1, lives: 1}},
		{"a server and two workers that die", game{graph: "shards:1", syncs: []int{0, 1, 1}, slack: 1, ends: []string{"close", "close", "close"}, kills: 2, lives: 1}},
		{"two parts, a worker that dies", game{graph: "shards:2", syncs: []int{1, 1, 1}, ends: []string{"", "", ""}, kills: 1, lives: 2}},
		{"two parts", game{graph: "shards", syncs: []int{2, 2}, ends: []string{"", ""}}},
		{"two parts, slack", game{graph: "shards", syncs: []int{2, 1}, slack: 1, ends: []string{"", "away"}}},
		{"two parts, all close", game{graph: "shards", syncs: []int{2, 0}, slack: 2, ends: []string{"close", "close"}}},
		{"a tree", game{graph: "shards:1/1", syncs: []int{0, 2, 2}, ends: []string{"away", "", ""}}},
		{"a tree, a worker that is away", game{graph: "shards:1/1", syncs: []int{0, 1, 2}, slack: 1, ends: []string{"away", "away", ""}}},
		{"a tree, all close", game{graph: "shards:1/1", syncs: []int{0, 0, 2}, slack: 1, ends: []string{"close", "close", "close"}}},
		{"a tree, a death", game{graph: "shards:1/1", syncs: []int{0, 1, 1}, ends: []string{"close", "close", "close"}, kills: 1}},
		{"a tree of two levels", game{graph: "shards:1/1", syncs: []int{0, 0, 1, 1}, ends: []string{"close", "close", "close", "close"}}},
		{"a tree, a rank of it leaves", game{graph: "shards:1/1", syncs: []int{1, 0, 2}, slack: 1, ends: []string{"close", "flee", "close"}}},
		{"two parts, trees", game{graph: "shards:2/1", syncs: []int{1, 1, 1}, ends: []string{"", "", ""}}},
		{"two parts, a death", game{graph: "shards", syncs: []int{1, 1}, ends: []string{"close", "close"}, kills: 1}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := &c.game
			values := explore.Values[world]{
				Start: g.start(), Key: g.key, Next: g.next, Bad: g.bad,
				Name: func(step uint64) string {
					r, other := step%64, step/64%64
					return fmt.Sprintf("rank %d: %s (%d)", r, [...]string{"dies", "adds a push", "hears of a clock", "pushes", "announces", "publishes",
						"takes a sum", "leaves", "scatters", "has gathered", "has not gathered", "ends"}[step/4096], other)
				},
				// All ranks are done, whose gathers wait for what others have changed, and those that
				// have closed the vector have left.
				Ends: func(w world) (reached, must bool) {
					reached, must = true, true
					for _, k := range w.ranks {
						reached = reached && (k.gone || k.over && k.c.own.Clock != closed)
						must = must && (!k.dead || g.lives > 0)
					}
					return reached, must
				},
				Limit: 4_000_000,
			}
			explore.Must(t, values.Run())
		})
	}
}

//go:build explore

package butterfly

import (
	"fmt"
	"slices"
	"testing"

	"malt/graphs"
	"malt/internal/explore"
	"malt/libmalt/engine"
)

// The decisions of all ranks of a job, in every order of their steps. A step is a scatter, a
// sum that is taken or published, a rank that finds itself in a collective call, a gather that is done,
// and what ends a rank. That is more than an engine does, which takes and publishes in passes.
//
// Besides its clocks each sum has what is really in it: how often each rank's changes, of
// which there is one at each clock. That is held against the clocks.

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
	boxes  []sum   // by stage: what it has published
	held   [][]sum // by stage and member of the group
	over   bool    // its calls are
	broken string  // by a gather
}

// sum is what a message has.
type sum struct {
	seq      int
	has      []reach
	contents []uint64 // by rank
}

type game struct {
	graph string
	syncs []int // of each rank
	slack uint64
	ends  []string // of each rank after its syncs: "" it stays, away, close; early: it may leave while it is needed
	kills int
}

func (g *game) start() world {
	graph, err := graphs.Parse(g.graph, len(g.syncs))
	if err != nil {
		panic(err)
	}
	w := world{}
	for r := range g.syncs {
		c := NewCore(graph, r)
		rk := rank{c: c, boxes: make([]sum, len(c.stages)), over: g.syncs[r] == 0 && g.ends[r] == ""}
		for _, s := range c.stages {
			rk.held = append(rk.held, make([]sum, len(s.Group)))
		}
		w.ranks = append(w.ranks, rk)
	}
	return w
}

// with is w with a rank that may be changed.
func (w world) with(r int) (world, *rank) {
	n := world{slices.Clone(w.ranks)}
	k := &n.ranks[r]
	c := *k.c
	c.has, c.gathered = slices.Clone(c.has), slices.Clone(c.gathered)
	c.sent = slices.Clone(c.sent)
	for i := range c.sent {
		c.sent[i] = slices.Clone(c.sent[i])
	}
	k.c, k.boxes, k.held = &c, slices.Clone(k.boxes), slices.Clone(k.held)
	for i := range k.held {
		k.held[i] = slices.Clone(k.held[i])
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

// contents is what this rank has of the changes of each, through the stages before this one.
func (k *rank) contents(stage int) []uint64 {
	all := make([]uint64, len(k.c.has))
	all[k.c.rank] = k.clock
	for i := range stage {
		for _, s := range k.held[i] {
			for r, n := range s.contents {
				all[r] += n
			}
		}
	}
	return all
}

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
		name := func(what, stage, from int) uint64 { return uint64(((what*8)+stage)*64+from)*64 + uint64(r) }
		if kills < g.kills {
			n, d := w.with(r)
			d.dead, d.gone = true, true
			to(name(0, 0, 0), true, n)
		}
		if k.away && k.c.has[r].Call == 0 {
			n, f := w.with(r)
			f.c.waited(w.until(r))
			to(name(8, 0, 0), false, n)
		}
		for i, s := range k.c.stages {
			for j, from := range s.Group {
				switch box := w.ranks[from].boxes[i]; {
				case w.comes(r, i, j):
					n, t := w.with(r)
					if err := t.c.take(i, from, box.has); err != nil {
						panic(err)
					}
					t.held[i][j] = box
					to(name(1, i, from), false, n)
				case w.cuts(r, i, from):
					n, t := w.with(r)
					t.c.cut(i, from)
					to(name(7, i, from), false, n)
				}
			}
			if k.c.due(i, w.until) {
				n, p := w.with(r)
				p.boxes[i] = sum{k.boxes[i].seq + 1, slices.Clone(p.c.of(i, r)), p.contents(i)}
				p.c.published(i)
				to(name(2, i, 0), false, n)
			}
		}
		switch {
		case k.over && k.c.has[r].Clock == closed:
			needed := k.c.Needed(nil, func(x int) bool { return w.ranks[x].gone })
			if w.idle(r) && len(needed) == 0 || g.ends[r] == "early" && k.told() {
				n, l := w.with(r)
				l.gone = true
				to(name(3, 0, 0), false, n)
			}
		case k.over:
		case !k.waits && k.clock < uint64(g.syncs[r]):
			n, s := w.with(r)
			s.clock++
			s.waits = true
			s.c.Scattered(s.clock)
			to(name(4, 0, 0), false, n)
		case k.waits && len(k.c.Late(nil, k.clock-min(k.clock, g.slack), w.until)) == 0:
			n, d := w.with(r)
			if lost, _ := k.c.Lost(); len(lost) == 0 { // else it fails
				d.broken = g.law(w, r)
			}
			d.waits = false
			to(name(5, 0, 0), false, n)
		case !k.waits:
			n, e := w.with(r)
			e.over = true
			switch g.ends[r] {
			case "close", "early":
				e.c.Lifted(closed)
			case "away":
				e.away = true
			}
			to(name(6, 0, 0), false, n)
		}
	}
}

// comes tells whether there is a newer sum of member j of a stage; cuts, whether that one has left, and nothing of
// it is there any more, which has yet to be noted.
func (w world) comes(r, stage, j int) bool {
	k := &w.ranks[r]
	from := k.c.stages[stage].Group[j]
	return from != r && w.ranks[from].boxes[stage].seq > k.held[stage][j].seq
}

func (w world) cuts(r, stage, from int) bool {
	left := w.ranks[from].gone && !w.ranks[from].dead
	return left && from != r && slices.ContainsFunc(w.ranks[r].c.of(stage, from), func(at reach) bool { return at.Clock < over })
}

// idle tells whether there is nothing to take or to publish: an engine does that before it leaves.
func (w world) idle(r int) bool {
	for i, s := range w.ranks[r].c.stages {
		for j, from := range s.Group {
			if w.comes(r, i, j) || w.cuts(r, i, from) {
				return false
			}
		}
		if w.ranks[r].c.due(i, w.until) {
			return false
		}
	}
	return true
}

// told tells whether all sums of a rank say that it has closed the vector, as they do when it has.
func (k *rank) told() bool {
	for i, s := range k.c.stages {
		if k.c.sent[i][k.c.rank-s.First(k.c.rank)].Clock != closed {
			return false
		}
	}
	return true
}

// law says what of the promise a gather of r breaks.
func (g *game) law(w world, r int) string {
	k := &w.ranks[r]
	for j, n := range k.contents(len(k.c.stages)) {
		least := k.clock - min(k.clock, g.slack)
		if w.ranks[j].c.has[j].Clock == closed || w.ranks[j].away {
			least = min(least, w.ranks[j].clock)
		}
		switch {
		case w.ranks[j].dead:
		case n < min(k.clock, w.ranks[j].clock) && k.c.Age(k.clock, w.until) < k.clock-n:
			return fmt.Sprintf("rank %d at clock %d has %d changes of rank %d, and age %d", r, k.clock, n, j, k.c.Age(k.clock, w.until))
		case n < least:
			return fmt.Sprintf("rank %d has %d changes of rank %d after its gather at clock %d, slack %d", r, n, j, k.clock, g.slack)
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
		if lost, through := k.c.Lost(); len(lost) > 0 && !slices.Contains(g.ends, "early") {
			return fmt.Sprintf("changes of %v come no more to rank %d: rank %d has left, and was needed", lost, r, through)
		}
		has := k.contents(len(k.c.stages))
		for j, n := range has {
			if at := k.c.has[j]; n != at.Scatters || at.Clock < over && n != at.Clock {
				return fmt.Sprintf("rank %d has %d changes of rank %d, of %d scatters up to clock %d", r, n, j, at.Scatters, at.Clock)
			}
		}
	}
	return g.silent(w)
}

// silent says whose changes a rank lacks and does not miss when nothing moves any more: of one that has closed the
// vector it has all; of one that has not, each rank on the way may hold the last one back. Ranks in a collective
// call are not looked at.
func (g *game) silent(w world) string {
	for r, k := range w.ranks {
		if k.dead || !k.gone && !(k.over && w.idle(r)) {
			return ""
		}
	}
	for r, k := range w.ranks {
		for j, n := range k.contents(len(k.c.stages)) {
			held := uint64(len(k.c.stages) - 1)
			if w.ranks[j].c.has[j].Clock == closed {
				held = 0
			}
			known := k.c.has[j].Clock >= over && k.c.has[j].Clock != closed
			if !k.gone && !w.ranks[j].away && !known && n+held < w.ranks[j].clock {
				return fmt.Sprintf("rank %d has %d of %d changes of rank %d, and nothing says so", r, n, w.ranks[j].clock, j)
			}
		}
	}
	return ""
}

func (g *game) key(b []byte, w world) []byte {
	for r := range w.ranks {
		k := &w.ranks[r]
		b = fmt.Append(b, k.clock, k.waits, k.away, k.gone, k.dead, k.over, k.c.has, k.c.sent)
		for i := range k.boxes {
			b = fmt.Append(b, k.boxes[i].has, k.boxes[i].contents)
			for _, h := range k.held[i] {
				b = fmt.Append(b, h.has)
			}
		}
	}
	return b
}

func TestExploreStages(t *testing.T) {
	stay, apart := []string{"", "", "", ""}, []string{"", "away", "close", ""}
	for _, c := range []struct {
		name string
		game
	}{
		{"three ranks in one stage", game{graph: "butterfly", syncs: []int{2, 2, 1}, ends: []string{"", "", "close"}}},
		{"three ranks, a death", game{graph: "butterfly", syncs: []int{1, 1, 1}, ends: []string{"", "", "close"}, kills: 1}},
		{"two stages", game{graph: "butterfly:2x2", syncs: []int{1, 1, 1, 1}, ends: stay}},
		{"two stages, a death", game{graph: "butterfly:2x2", syncs: []int{1, 1, 1, 1}, ends: stay, kills: 1}},
		{"two stages, one serves", game{graph: "butterfly:2x2", syncs: []int{1, 0, 0, 1}, ends: apart}},
		{"two stages, one goes away", game{graph: "butterfly:2x2", syncs: []int{2, 1, 0, 1}, ends: []string{"", "away", "close", "away"}}},
		{"two stages, all serve", game{graph: "butterfly:2x2", syncs: []int{1, 0, 0, 1}, ends: []string{"close", "close", "close", "close"}}},
		{"two stages, one does not come", game{graph: "butterfly:2x2", syncs: []int{2, 0, 0, 0}, slack: 2, ends: stay}},
		{"two stages, one leaves early", game{graph: "butterfly:2x2", syncs: []int{2, 0, 0, 0}, slack: 2, ends: []string{"", "early", "", ""}}},
		{"two stages, one closes", game{graph: "butterfly:2x2", syncs: []int{0, 1, 0, 0}, slack: 1, ends: []string{"", "close", "", ""}}},
		{"two stages, slack", game{graph: "butterfly:2x2", syncs: []int{2, 0, 0, 1}, slack: 1, ends: apart}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			g := &c.game
			values := explore.Values[world]{
				Start: g.start(), Key: g.key, Next: g.next, Bad: g.bad,
				Name: func(step uint64) string {
					r, from, stage := step%64, step/64%64, step/4096%8
					return fmt.Sprintf("rank %d: %s", r, [...]string{"dies", fmt.Sprintf("takes of rank %d in stage %d", from, stage+1),
						fmt.Sprintf("publishes stage %d", stage+1), "leaves", "scatters", "has gathered", "ends",
						fmt.Sprintf("knows in stage %d that rank %d has left", stage+1, from), "finds itself away"}[step/4096/8])
				},
				// All ranks are done, whose gathers wait for what others have changed: none before it
				// is there.
				Ends: func(w world) (reached, must bool) {
					reached, must = true, true
					for _, k := range w.ranks {
						reached = reached && (k.over || k.gone)
						must = must && !k.dead
					}
					return reached, must
				},
				Limit: 4_000_000,
			}
			explore.Must(t, values.Run())
		})
	}
}

//go:build explore

package rendezvous

import (
	"fmt"
	"slices"
	"testing"

	"malt/internal/explore"
	"malt/rdma"
)

// views is a case: victims, which die at any time; watchers, each a rank that notices
// deaths; and a reader, which looks at the view so many times. Watchers may die, too.
type views struct {
	victims, watchers, reads int
	silent                   bool // watchers say that a rank is dead, and leave the view to others
	least                    int
}

func (c views) setup(x *explore.Exec) {
	size := 1 + c.watchers + c.victims
	p := page(x.Memory(pageBytes(size)))
	x.Names(func(word func([]byte, string)) {
		word(p[offView:], "view")
		for rank := range size {
			word(p[offMembers+rank*perMember+offState:], fmt.Sprint("state of rank ", rank))
			for which := range 2 {
				word(p[offMembers+rank*perMember+offSets+which*setBytes:], fmt.Sprintf("set %d of rank %d", which, rank))
			}
		}
	})
	p.format(size, 0)
	host := func(rank int) *Host {
		h := &Host{cfg: Config{Rank: rank, Size: size}, members: (&Config{Size: size}).members(), page: p}
		h.Survive(max(1, c.least))
		return h
	}
	for rank := range size {
		p.state(rank).Store(alive)
	}
	victims := make([]*explore.Thread, c.victims)
	first := 1 + c.watchers
	for i := range victims {
		victims[i] = x.Go(fmt.Sprint("victim ", i), func(t *explore.Thread) { t.Yield() })
	}
	seen := make([][]rdma.View, c.watchers) // what each watcher has found
	for w := range c.watchers {
		h := host(1 + w)
		h.deaths = &deaths{h: h}
		x.Go(fmt.Sprint("watcher ", w), func(t *explore.Thread) {
			var known []int
			for {
				t.At("watch", known, h.known.Load(), seen[w])
				i := t.AwaitDeath(victims, &known)
				if i < 0 {
					return
				}
				if p.advance(first+i, dead); !c.silent {
					h.leaveOut(first + i)
					seen[w] = append(seen[w], h.View())
				}
			}
		})
	}
	h := host(0)
	x.Always(func(report func(string, ...any)) {
		v := h.known.Load()
		for _, views := range seen {
			for _, other := range views {
				if v != nil && v.Generation == other.Generation && !slices.Equal(v.Ranks, other.Ranks) {
					report("two views of generation %d: %v and %v", v.Generation, v.Ranks, other.Ranks)
				}
			}
		}
	})
	x.Go("reader", func(t *explore.Thread) {
		var last rdma.View
		for n := range c.reads {
			t.At("read", n, last, h.known.Load())
			v := h.View()
			c.judge(t, first, last, v)
			last = v
			for i := range victims {
				if h.State(first+i) == nil {
					continue
				}
				if n := len(h.View().Ranks); h.View().Has(first+i) && n > c.least {
					t.Fail("rank %d is known to be dead, and the view %v has it", first+i, h.View())
				}
			}
		}
	}).Immune()
}

// judge holds what the reader has found against what it had found before.
func (c views) judge(t *explore.Thread, first int, last, v rdma.View) {
	switch {
	case v.Generation < last.Generation || v.Generation == last.Generation && len(v.Ranks) != len(last.Ranks):
		t.Fail("view %v after %v", v, last)
	case v.Generation == 1 && len(v.Ranks) != first+c.victims || v.Generation > 1 && len(v.Ranks) >= first+c.victims:
		t.Fail("the view is %v", v)
	case len(v.Ranks) < c.least:
		t.Fail("fewer than %d in view %v", c.least, v)
	}
	if gone := first + c.victims - len(v.Ranks); uint64(gone) < v.Generation-1 {
		t.Fail("view %v, and only %d have gone", v, gone)
	}
	for r := range first {
		if !v.Has(r) {
			t.Fail("rank %d lives, and is not in view %v", r, v)
		}
	}
	for _, r := range v.Ranks {
		if last.Generation > 0 && !last.Has(r) {
			t.Fail("rank %d is back in view %v, after %v", r, v, last)
		}
	}
}

// The ranks agree on the view: each generation has one set of members, without those that
// are known to be dead, whoever dies while it proposes.
func TestExploreView(t *testing.T) {
	for _, c := range []struct {
		name               string
		large              bool
		kills, preemptions int
		views
	}{
		{"one watcher", false, 4, 1, views{victims: 3, watchers: 1, reads: 1}},
		{"two watchers", false, 3, 1, views{victims: 2, watchers: 2, reads: 1}},
		{"who looks repairs", false, 2, 0, views{victims: 2, watchers: 1, reads: 2, silent: true}},
		{"too few are left", false, 2, 0, views{victims: 2, watchers: 1, reads: 1, least: 3}},
		{"two watchers, two victims", true, 3, 1, views{victims: 2, watchers: 2, reads: 2}},
	} {
		explore.Case(t, c.name, c.large, func(t *testing.T) {
			explore.Must(t, explore.Check(explore.Options{Kills: c.kills, Preemptions: c.preemptions}, c.setup))
		})
	}
}

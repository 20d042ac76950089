package processes

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// How ranks that live are left behind. Ranks of hosts that have gone die as their plan says.
const (
	off    = "off"     // their host loses its power
	cutOff = "cut off" // their host is cut off until the others have gone on
)

// pickGone has a host be powered off, or be cut off for so long that the others go on without it:
// from all others, or from one that the other hosts hear. Then the higher one of the two is
// left out. All votes but one are left.
func (p *plan) pickGone(rnd *rand.Rand) {
	if rnd.IntN(2) > 0 || p.hosts < 3 && !p.witness {
		return
	}
	r := rnd.IntN(p.ranks)
	f := fault{what: pick(rnd, off, cutOff, cutOff), host: p.places[r], other: -1, rank: r, after: p.pickMoment(rnd)}
	if f.what == cutOff {
		f.way = pick(rnd, "cut", "cut=unplug", "cut=blackhole", "cut=address", "->", "<-")
		if p.hosts > 2 && rnd.IntN(3) == 0 {
			f.pickLink(rnd, p.hosts)
		}
	}
	p.gone, p.voteless, p.least = &f, nil, 1
	p.faults = slices.DeleteFunc(p.faults, func(f fault) bool { return f.what == "cut" }) // whose end would heal it
	p.faults = append(p.faults, f)
	p.deaths = slices.DeleteFunc(p.deaths, func(d death) bool { return p.concerns(p.places[d.rank]) })
	for rank, h := range p.places {
		if p.concerns(h) {
			p.deaths = append(p.deaths, death{rank, f.what, f.after, r})
		}
	}
}

// concerns tells whether a host may be the one that goes.
func (w *weather) concerns(host int) bool {
	return w.gone != nil && (host == w.gone.host || host == w.gone.other)
}

// mayLive tells whether a rank may be left out and live.
func (p *plan) mayLive(rank int) bool {
	d := p.deathOf(rank)
	return d != nil && d.how == cutOff
}

// pickLink has a cut be that of one link.
func (f *fault) pickLink(rnd *rand.Rand, hosts int) {
	f.way = pick(rnd, "->", "<-", "-")
	f.other = (f.host + 1 + rnd.IntN(hosts-1)) % hosts
}

// cuts are the events of a cut, and of its end.
func (f fault) cuts(hosts []*host) (made, healed []string) {
	name := hosts[f.host].Name
	if f.way != "->" && f.way != "<-" && f.way != "-" {
		return []string{f.way + ":" + name}, []string{"heal:" + name}
	}
	for i, h := range hosts {
		if i == f.host || f.other >= 0 && i != f.other {
			continue
		}
		link := name + f.way + h.Name
		if f.way == "<-" {
			link = h.Name + "->" + name
		}
		made, healed = append(made, "cut:"+link), append(healed, "heal:"+link)
	}
	return made, healed
}

func (w *wires) applyAll(events []string) error {
	for _, e := range events {
		if err := w.apply(e); err != nil {
			return err
		}
	}
	return nil
}

// leaveHost powers a host off, or cuts it off until the others have gone on or are done.
func (c *controller) leaveHost(f fault) error {
	hosts := c.job.hosts
	wires := hosts[0].wires
	if f.what == off {
		for rank, h := range c.places {
			if h == f.host {
				c.job.page.at(rank, died).Store(int64(now()))
			}
		}
		return wires.apply("off:" + hosts[f.host].Name)
	}
	made, healed := f.cuts(hosts)
	if err := wires.applyAll(made); err != nil {
		return err
	}
	var concerned int64
	for rank, h := range c.places {
		if c.concerns(h) {
			concerned |= 1 << rank
		}
	}
	for rank, h := range c.places {
		if f.other < 0 && h == f.host {
			continue
		}
		c.waitUntil(rank, func() bool {
			m := c.job.page.at(rank, members).Load()
			return m != 0 && m&concerned != concerned || c.job.page.at(rank, stage).Load() >= finished
		})
	}
	return wires.applyAll(healed)
}

// markLeftOut has ranks that live count as gone if another rank has noted so.
func (c *controller) markLeftOut(logs [][]event) error {
	var out uint64
	for _, log := range logs {
		for _, e := range log {
			if e.Ended != 0 && e.Kind != done {
				out |= (1<<c.ranks - 1) &^ e.Members
			}
		}
	}
	gone := map[int]int{} // ranks, by host
	for rank, h := range c.places {
		if c.mayLive(rank) && has(out, rank) {
			c.job.page.at(rank, died).Store(int64(now()))
		}
		if c.mayLive(rank) && c.fell(rank) {
			gone[h]++
		}
	}
	for h, n := range gone {
		all := 0
		for _, at := range c.places {
			if at == h {
				all++
			}
		}
		if n < all || len(gone) > 1 {
			return fmt.Errorf("left out are so many ranks by host: %v; views by rank: %v", gone, viewsOf(logs))
		}
	}
	return nil
}

// viewsOf is how each rank has gone from view to view.
func viewsOf(logs [][]event) (by [][]string) {
	for _, log := range logs {
		var views []string
		for _, e := range log {
			if v := fmt.Sprintf("%d: %v", e.Generation, ranksOf(e.Members)); e.Ended != 0 && e.Kind != done && !slices.Contains(views, v) {
				views = append(views, v)
			}
		}
		by = append(by, views)
	}
	return by
}

// judgeLeftOut: a rank that was left out and lives has an error that says so, or had nothing left to do.
func (c *controller) judgeLeftOut(v *verdict) error {
	switch {
	case v == nil:
		return errors.New("ended without a report")
	case v.Outcome == expelled || v.Outcome == fine:
		c.tally.add("ranks that were left out: "+v.Outcome, 1)
		return nil
	}
	return errors.New(v.Text)
}

// judgeOut: G9 and G10. What is sent by a rank that a reader has gone on without is not folded, and
// a rank is not confirmed that another one has gone on without.
func (q *inquest) judgeOut() error {
	for r, log := range q.logs {
		without := make([]int64, q.ranks) // by sender: when this rank had gone on without it
		for _, e := range log {
			if e.Ended == 0 || e.Kind == done {
				continue
			}
			for s := range q.ranks {
				if sent := q.sends[s][e.Folded[s]]; e.Folded[s] != 0 && without[s] != 0 && sent != nil && sent.Began > without[s] {
					return fmt.Errorf("G9: rank %d folds clock %d of rank %d, sent %v after it had gone on without that", r, e.Folded[s], s, time.Duration(sent.Began-without[s]))
				}
				if without[s] == 0 && !has(e.Members, s) {
					without[s] = e.Ended
				}
			}
		}
		for s, at := range without {
			for _, e := range q.logs[s] {
				if e.Kind == confirmed && e.Ended != 0 && at != 0 && e.Began > at {
					return fmt.Errorf("G10: rank %d is confirmed %v after rank %d had gone on without it", s, time.Duration(e.Began-at), r)
				}
			}
		}
	}
	return nil
}

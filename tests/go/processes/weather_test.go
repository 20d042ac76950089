package processes

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// What one schedule has at most.
const (
	mostHosts  = 4
	mostFaults = 5
)

// weather is where the ranks of a plan are, what the cables of their hosts are
// like, and what happens to them.
type weather struct {
	hosts     int
	witness   bool   // one host more has a vote
	voteless  *death // the end of that vote; nil: it lives
	places    []int  // by rank: its host
	transport string
	encrypt   bool
	cables    []cable // by host, from the start
	faults    []fault
	lost      *fault // a cable that is cut for good
	gone      *fault // a host that the others go on without
}

// cable is what leads from a host to the others.
type cable struct {
	loss  float64
	delay time.Duration
	rate  float64 // bits per second; 0: as fast as it goes
}

// fault is a change of a cable, at a moment in the life of a rank.
type fault struct {
	host  int
	what  string // cut, reset, or a quality; off, cutOff
	way   string // of a cut: an event, or a link's direction
	other int    // the end of the link; -1: all others
	cable cable  // of a quality: from now on
	rank  int
	after moment
	lasts time.Duration // of a cut; 0: for good
}

// Limits of the transport, and what a network may add to them.
const (
	unreachable = 5 * time.Second         // a host that is silent for so long is taken for dead
	doubted     = unreachable * 4 / 5     // where ranks survive others, they doubt it
	recovery    = 1500 * time.Millisecond // until the kernel has sent again what was lost
	longestCut  = doubted - recovery      // is survived; all of a plan together
	mostCut     = doubted - time.Second   // is survived if the machine is quick to end it
	lossyCut    = 1200 * time.Millisecond // is survived also where a packet is lost after it: TCP tries again after 1.4 s and after 3
)

// pickWeather places the ranks of a plan. Of the network and of rounds there is
// less than in one machine, since what is lost is sent again a fifth of a second
// later.
func (p *plan) pickWeather(rnd *rand.Rand) {
	w := &weather{transport: pick(rnd, "auto", "auto", "tcp"), encrypt: rnd.IntN(4) == 0}
	w.hosts = min(p.ranks, 2+rnd.IntN(mostHosts-1))
	w.places = make([]int, p.ranks)
	for i, r := range rnd.Perm(p.ranks) {
		w.places[r] = i // each host has a rank
		if i >= w.hosts {
			w.places[r] = rnd.IntN(w.hosts)
		}
	}
	w.cables = make([]cable, w.hosts)
	p.weather, p.bytes, p.rounds = w, 6<<20, 40
	bad := rnd.IntN(3) > 0
	for h := range w.cables {
		if bad {
			w.cables[h] = pick(rnd, cable{}, pickCable(rnd))
			p.rounds = 12
		}
	}
	for range rnd.IntN(mostFaults) {
		f := p.pickFault(rnd)
		if f.what == "quality" {
			p.rounds = 12
		}
		w.faults = append(w.faults, f)
	}
	w.shorten()
}

// shorten keeps all cuts together to what is survived.
func (w *weather) shorten() {
	left := longestCut
	if slices.ContainsFunc(w.cables, func(c cable) bool { return c.loss > 0 }) || slices.ContainsFunc(w.faults, func(f fault) bool { return f.cable.loss > 0 }) {
		left = lossyCut
	}
	var faults []fault
	for _, f := range w.faults {
		if f.what == "cut" {
			f.lasts = min(f.lasts, left)
			if left -= f.lasts; f.lasts == 0 {
				continue
			}
		}
		faults = append(faults, f)
	}
	w.faults = faults
}

func pickCable(rnd *rand.Rand) cable {
	return pick(rnd,
		cable{loss: 0.01}, cable{loss: 0.01}, cable{loss: 0.05},
		cable{delay: 20 * time.Millisecond}, cable{delay: upTo(rnd, 20*time.Millisecond)},
		cable{rate: 1e8}, cable{rate: 1e7}, cable{loss: 0.01, delay: 5 * time.Millisecond, rate: 5e7})
}

func (p *plan) pickFault(rnd *rand.Rand) fault {
	f := fault{what: pick(rnd, "cut", "cut", "reset", "reset", "quality"), rank: rnd.IntN(p.ranks), after: p.pickMoment(rnd)}
	f.host = rnd.IntN(p.weather.hosts)
	switch f.what {
	case "cut":
		if f.way, f.other = "cut=unplug", -1; rnd.IntN(3) == 0 {
			f.pickLink(rnd, p.weather.hosts)
		}
		f.lasts = pick(rnd, upTo(rnd, longestCut), longestCut/2+upTo(rnd, longestCut/2)) + time.Millisecond
	case "quality":
		f.cable = pick(rnd, cable{}, pickCable(rnd))
	}
	return f
}

// stopForLong adds a stop that outlasts the time after which a silent host counts
// as unreachable: a process that is stopped is not dead.
func (p *plan) stopForLong(rnd *rand.Rand) {
	r := rnd.IntN(p.ranks)
	p.stops[r] = append(p.stops[r], stop{after: p.pickMoment(rnd), hold: unreachable + recovery})
}

// lose cuts the cable of a host for good, in the place of deaths.
func (p *plan) lose(rnd *rand.Rand) {
	f := fault{host: rnd.IntN(p.weather.hosts), what: "cut", way: "cut=unplug", other: -1, rank: rnd.IntN(p.ranks), after: p.pickMoment(rnd)}
	p.weather.lost, p.deaths = &f, nil
	p.weather.faults = append(p.weather.faults, f)
}

// separates tells whether a cable that is cut for good is between two ranks.
func (w *weather) separates(a, b int) bool {
	return w != nil && w.lost != nil && (w.places[a] == w.lost.host) != (w.places[b] == w.lost.host)
}

// promptly is how soon a blocked call has to know of a death, or of a host that
// cannot be reached.
func (w *weather) promptly() time.Duration {
	switch {
	case w == nil || len(w.faults) == 0 && !slices.ContainsFunc(w.cables, func(c cable) bool { return c != cable{} }):
		return time.Second
	case w.lost == nil && !slices.ContainsFunc(w.faults, func(f fault) bool { return f.what == "cut" }):
		return time.Second + recovery // a packet that tells may be lost
	}
	return unreachable + recovery
}

func (w *weather) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n  transport %s, encrypted %v; ranks on hosts %v, a witness %v", w.transport, w.encrypt, w.places, w.witness)
	for h, c := range w.cables {
		if c != (cable{}) {
			fmt.Fprintf(&b, "\n  cable of host %d: %s", h, c)
		}
	}
	if d := w.voteless; d != nil {
		fmt.Fprintf(&b, "\n  the witness is killed at %s of rank %d", d.after, d.of)
	}
	for _, f := range w.faults {
		fmt.Fprintf(&b, "\n  host %d at %s of rank %d: %s", f.host, f.after, f.rank, f)
	}
	return b.String()
}

func (f fault) String() string {
	switch {
	case f.what == "quality":
		return "its cable has " + f.cable.String()
	case f.what == "reset":
		return "its connections are reset"
	case f.what == off:
		return "it is powered off"
	}
	cut := f.way
	if f.other >= 0 {
		cut += fmt.Sprintf(" host %d", f.other)
	}
	switch {
	case f.what == cutOff:
		return cut + " until the others have gone on"
	case f.lasts == 0:
		return cut + " for good"
	}
	return fmt.Sprintf("%s for %v", cut, f.lasts)
}

func (c cable) String() string {
	rate := "any rate"
	if c.rate > 0 {
		rate = fmt.Sprintf("%g Mbit/s", c.rate/1e6)
	}
	return fmt.Sprintf("loss %g %%, delay %v, %s", c.loss*100, c.delay, rate)
}

// lay gives hosts their cables.
func (w *weather) lay(hosts []*host) error {
	for i, h := range hosts {
		if err := h.give(w.cables[i]); err != nil {
			return err
		}
	}
	return nil
}

func (h *host) give(to cable) error {
	var rate any
	if to.rate > 0 {
		rate = to.rate
	}
	for _, q := range []struct {
		what  string
		value any
	}{{"rate", rate}, {"loss", to.loss}, {"delay", to.delay.Seconds()}} {
		if err := h.change(q.what, q.value); err != nil {
			return err
		}
	}
	return nil
}

// calm makes all cables as they were.
func calm(hosts []*host) error {
	for _, h := range hosts {
		if err := h.change("calm"); err != nil {
			return err
		}
	}
	return nil
}

// befall carries out a fault. A network that does not do as it is told is the
// test's own failure.
func (c *controller) befall(f fault) error {
	if !c.await(f.rank, f.after) {
		return nil
	}
	h := c.job.hosts[f.host]
	c.mu.Lock()
	c.tally.add(map[string]string{"cut": "cuts", "reset": "resets", "quality": "changes of a cable", off: "hosts powered off", cutOff: "hosts cut off until the others have gone on"}[f.what], 1)
	c.mu.Unlock()
	switch f.what {
	case "reset":
		return h.change("reset")
	case "quality":
		return h.give(f.cable)
	case off, cutOff:
		return c.leaveHost(f)
	}
	made, healed := f.cuts(c.job.hosts)
	if f.lasts == 0 {
		c.parted.Store(int64(now()))
		return h.wires.applyAll(made)
	}
	began := now()
	if err := h.wires.applyAll(made); err != nil {
		return err
	}
	select {
	case <-time.After(f.lasts):
	case <-c.done:
	}
	err := h.wires.applyAll(healed)
	c.mu.Lock()
	c.cuts = append(c.cuts, span{began, now()})
	c.mu.Unlock()
	return err
}

// span is from when to when a cable was cut, at most.
type span struct{ from, to time.Duration }

// longest is for how long ranks may have been silent to each other: cuts that follow each other
// closely are one.
func longest(cuts []span) (most time.Duration) {
	slices.SortFunc(cuts, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var all span
	for i, s := range cuts {
		if i == 0 || s.from > all.to+recovery {
			all = s
		}
		all.to = max(all.to, s.to)
		most = max(most, all.to-all.from)
	}
	return most
}

package processes

import (
	"math/rand/v2"
	"slices"
	"time"

	"malt/graphs"
	"malt/libmalt/rule"
)

var (
	modeNames  = []string{"async", "async", "ssp:0", "ssp:1", "ssp:3", "bsp", "bsp", "notify-ack:1", "notify-ack:1", "notify-ack:2", "notify-ack:4"}
	graphNames = []string{"all", "all", "halton", "ring", "one-peer", "chord", "star", "random:2", "hypercube"}
)

// newPlan draws a plan.
func newPlan(l lot) *plan {
	if l.Survive {
		return newSurvival(l)
	}
	rnd := rand.New(rand.NewPCG(l.Seed, 0))
	p := &plan{lot: l, ranks: pick(rnd, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8), bytes: 48 << 20, rounds: 60}
	p.order = rnd.Perm(p.ranks)
	if l.Hosts {
		p.pickWeather(rnd)
	}
	p.object = pickObject(rnd, p.bytes/(p.ranks*(p.ranks+3)))
	p.impatient = rnd.IntN(4) == 0
	p.noise = rnd.IntN(3) == 0
	for range p.ranks {
		p.threads = append(p.threads, pick(rnd, 1, 2, 4, 4))
	}
	p.end = pick(rnd, together, together, apart, stay, stay, desert, shut)
	p.chosen = rnd.IntN(p.ranks)
	if rnd.IntN(3) == 0 {
		p.deaths = append(p.deaths, p.pickDeath(rnd))
		if d := p.pickDeath(rnd); rnd.IntN(4) == 0 && d.rank != p.deaths[0].rank {
			p.deaths = append(p.deaths, d)
		}
	}
	if l.Hosts && rnd.IntN(8) == 0 {
		p.lose(rnd)
	}
	if p.fatal() && (p.end == desert || p.end == stay) {
		p.end = together // who else is gone must not depend on the moment
	}
	last := 1 + rnd.IntN(3)
	var before string
	for i := 1; i <= last; i++ {
		ph := p.pickPhase(rnd)
		now := ph.graph.String() + ph.mode.String()
		if before != "" && now != before {
			// The phase before ends with the change.
			then := &p.phases[i-2].then
			*then = slices.Insert(*then, rnd.IntN(len(*then)+1), collective{kind: configure})
		}
		before = now
		if i < last || p.end == together {
			for range 1 + rnd.IntN(2) {
				ph.then = append(ph.then, p.pickCollective(rnd))
			}
		}
		p.phases = append(p.phases, ph)
	}
	if p.end == stay {
		p.chosen = p.lastNeeded()
	}
	p.stops = make([][]stop, p.ranks)
	for range rnd.IntN(2 * p.ranks) {
		r := rnd.IntN(p.ranks)
		p.stops[r] = append(p.stops[r], p.pickStop(rnd))
	}
	if l.Hosts && rnd.IntN(10) == 0 {
		p.stopForLong(rnd)
	}
	if rnd.IntN(3) == 0 {
		p.pokes = rnd.IntN(300)
	}
	if rnd.IntN(8) == 0 {
		p.intruders = append(p.intruders, intruder{rnd.IntN(p.ranks), p.pickMoment(rnd), rnd.IntN(2) == 0})
	}
	return p
}

// lastNeeded is a rank that nobody waits for once it is done with its part: in
// async any, else one that scatters most in the last phase.
func (p *plan) lastNeeded() int {
	last := &p.phases[len(p.phases)-1]
	best := p.chosen
	for r := range p.ranks {
		if last.mode.Kind != rule.Async && last.scatters(r) > last.scatters(best) {
			best = r
		}
	}
	return best
}

func pick[T any](rnd *rand.Rand, from ...T) T { return from[rnd.IntN(len(from))] }

// upTo is a random time below d, mostly far below.
func upTo(rnd *rand.Rand, d time.Duration) time.Duration {
	f := rnd.Float64()
	return time.Duration(f * f * f * float64(d))
}

func (p *plan) pickPhase(rnd *rand.Rand) planPhase {
	ph := planPhase{ops: make([][]op, p.ranks)}
	ph.mode, _ = rule.Parse(pick(rnd, modeNames...))
	if rnd.IntN(3) == 0 || p.exchanges { // most of its rounds are averages in place, or between hosts
		ph.mode, ph.syncs = rule.Rule{Kind: rule.BSP}, true
		ph.graph, _ = graphs.Parse("all", p.ranks)
	}
	if n := len(p.phases); n > 0 && rnd.IntN(3) == 0 { // without a change in between
		ph.mode, ph.graph = p.phases[n-1].mode, p.phases[n-1].graph
	}
	for ph.graph == nil {
		g, err := graphs.Parse(pick(rnd, graphNames...), p.ranks)
		if err == nil && g.CheckConnected() == nil { // else not one for this number of ranks
			ph.graph = g
		}
	}
	steps := 2 + rnd.IntN(p.steps())
	uneven, subsets, slow := rnd.IntN(2) == 0, rnd.IntN(2) == 0, rnd.IntN(2*p.ranks)
	for r := range p.ranks {
		n := steps
		if uneven {
			n = rnd.IntN(steps + 1)
		}
		pace := upTo(rnd, 300*time.Microsecond)
		if r == slow {
			pace *= 10
		}
		ph.ops[r] = ph.pickOps(rnd, n, pace)
		if subsets {
			ph.pickSubsets(rnd, r, p.base(len(p.phases)))
		}
	}
	return ph
}

// pickOps is n rounds of a rank, as the mode allows: in bsp each scatter is
// followed by a gather. In notify-ack:d the n-th scatter comes after n-d
// gathers at least, the n-th gather after n scatters at least; then no circle of
// ranks can wait for each other. In the overwriting modes anything goes.
func (ph *planPhase) pickOps(rnd *rand.Rand, n int, pace time.Duration) (ops []op) {
	add := func(k opKind) { ops = append(ops, op{kind: k, pause: upTo(rnd, pace)}) }
	gather := func() {
		add(pick(rnd, look, look, look, lookTwice, foldSum, foldMax, foldReplace, foldMean))
	}
	for n > 0 {
		switch ph.mode.Kind {
		case rule.BSP:
			if rnd.IntN(3) == 0 || ph.syncs && rnd.IntN(12) > 0 {
				add(syncAll)
			} else {
				add(scatter)
				gather()
			}
			n--
		case rule.NotifyAck:
			if rnd.IntN(3) == 0 {
				add(syncAll)
				n--
				break
			}
			k := min(n, 1+rnd.IntN(int(ph.mode.N)))
			for range k {
				add(scatter)
			}
			for range k {
				gather()
			}
			n -= k
		default:
			for range rnd.IntN(4) {
				add(scatter)
			}
			if rnd.IntN(4) == 0 {
				add(syncAll)
			}
			for range rnd.IntN(3) {
				gather()
			}
			n--
		}
	}
	return ops
}

// pickSubsets gives half of a rank's scatters some of the receivers only. base is
// the clock at which the phase begins.
func (ph *planPhase) pickSubsets(rnd *rand.Rand, rank int, base uint64) {
	clock := base
	for i := range ph.ops[rank] {
		o := &ph.ops[rank][i]
		if o.kind != scatter && o.kind != syncAll {
			continue
		}
		clock++
		if o.kind == scatter && rnd.IntN(2) == 0 {
			o.to = []int{}
			for _, r := range ph.graph.Receivers(rank, clock) {
				if rnd.IntN(2) == 0 {
					o.to = append(o.to, r)
				}
			}
		}
	}
}

// pickDeath: mostly a kill at a moment given by what the rank has done.
func (p *plan) pickDeath(rnd *rand.Rand) death {
	d := death{rank: rnd.IntN(p.ranks), how: pick(rnd, "kill", "kill", "kill", "kill", "exit", "abort")}
	d.of = d.rank
	if d.how != "kill" {
		d.after.value = rnd.IntN(60)
		return d
	}
	d.after = p.pickMoment(rnd)
	if rnd.IntN(12) == 0 {
		d.after = moment{stage, joining, upTo(rnd, 5*time.Millisecond)}
	}
	return d
}

func (p *plan) pickMoment(rnd *rand.Rand) moment {
	m := moment{delay: upTo(rnd, 2*time.Millisecond)}
	switch rnd.IntN(4) {
	case 0:
		m.word, m.value = scatters, 1+rnd.IntN(p.rounds*4/3)
	case 1:
		m.word, m.value = gathers, 1+rnd.IntN(p.rounds)
	case 2:
		m.word, m.value = collectives, 1+rnd.IntN(6)
	case 3:
		m.word, m.value, m.delay = stage, joined, upTo(rnd, 200*time.Millisecond)
	}
	return m
}

func (p *plan) pickStop(rnd *rand.Rand) stop {
	s := stop{after: p.pickMoment(rnd), hold: upTo(rnd, 40*time.Millisecond) + 1}
	if rnd.IntN(8) == 0 {
		s.after = moment{stage, pick(rnd, started, joining), upTo(rnd, 5*time.Millisecond)}
	} else if rnd.IntN(2) == 0 {
		s.hold = 0
	}
	return s
}

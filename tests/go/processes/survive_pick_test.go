package processes

import (
	"math/rand/v2"
	"slices"
	"time"

	"malt/graphs"
	"malt/libmalt"
)

// newSurvival draws a plan of a job that goes on when ranks die: one, or any number up to
// all but one, each at a moment of its own or several at once.
func newSurvival(l lot) *plan {
	rnd := rand.New(rand.NewPCG(l.Seed, 3))
	p := &plan{lot: l, ranks: pick(rnd, 2, 2, 3, 3, 4, 4, 5, 6, 7, 8), bytes: 24 << 20, rounds: 50}
	p.order = rnd.Perm(p.ranks)
	if l.Hosts {
		p.pickWeather(rnd)
		p.transport = "auto" // others have no page for votes
	}
	p.object = pickObject(rnd, p.bytes/(p.ranks*(p.ranks+3)))
	if rnd.IntN(4) == 0 {
		p.object = pickSparse(rnd)
	}
	if p.exchanges = l.Hosts && rnd.IntN(3) == 0; p.exchanges { // most layouts of hosts do, of so many bytes
		p.object = object{arrays: []libmalt.Array{{DType: libmalt.Float32, Count: p.bytes / (p.ranks * (p.ranks + 3)) / 4}}}
	}
	p.impatient = rnd.IntN(4) == 0
	p.noise = rnd.IntN(4) == 0
	for range p.ranks {
		p.threads = append(p.threads, pick(rnd, 1, 2, 4, 4))
	}
	p.end = pick(rnd, together, together, together, apart, shut)
	if l.Hosts { // hosts whose ranks have left have no vote
		p.end = together
	}
	p.pickDeaths(rnd)
	last := 1 + rnd.IntN(3)
	for i := 1; i <= last; i++ {
		p.phases = append(p.phases, p.pickPhase(rnd))
		ph := &p.phases[i-1]
		if l.Hosts && ph.queues() { // between hosts they have no new edges
			ph.graph, _ = graphs.Parse("all", p.ranks)
		}
		if i > 1 && (ph.graph.String() != p.phases[i-2].graph.String() || ph.mode != p.phases[i-2].mode) {
			then := &p.phases[i-2].then
			*then = slices.Insert(*then, rnd.IntN(len(*then)+1), collective{kind: configure})
		}
		if i < last || p.end == together {
			for range 1 + rnd.IntN(3) {
				c := p.pickCollective(rnd)
				if l.Hosts { // rank 0 sends its values once to each other rank
					c.bytes = min(c.bytes, 300_000)
				}
				ph.then = append(ph.then, c)
			}
		}
	}
	p.settle()
	p.stops = make([][]stop, p.ranks)
	for range rnd.IntN(p.ranks + 2) {
		r := rnd.IntN(p.ranks)
		p.stops[r] = append(p.stops[r], p.pickStop(rnd))
	}
	if rnd.IntN(4) == 0 {
		p.pokes = rnd.IntN(200)
	}
	if l.Hosts && p.hosts < mostHosts {
		p.witness = rnd.IntN(2) == 0
	}
	if p.least = 1; rnd.IntN(4) == 0 {
		p.least = 2 + rnd.IntN(p.ranks-1)
	}
	if l.Hosts {
		if p.witness && rnd.IntN(2) == 0 {
			p.voteless = &death{of: rnd.IntN(p.ranks), after: p.pickMoment(rnd)}
		}
		p.pickGone(rnd)
		p.leaveVotes()
	}
	return p
}

// leaveVotes lets ranks live, so that no more than half of the hosts die: at once they would
// leave too few votes.
func (p *plan) leaveVotes() {
	most := p.hosts / 2
	if p.voteless != nil {
		most = (p.hosts+1)/2 - 1
	}
	living := make([]int, p.hosts)
	for _, h := range p.places {
		living[h]++
	}
	if p.gone != nil { // and that is one
		most = 0
	}
	dead := 0
	p.deaths = slices.DeleteFunc(p.deaths, func(d death) bool {
		h := p.places[d.rank]
		if p.concerns(h) {
			return false
		}
		if living[h] == 1 && dead == most {
			return true
		}
		if living[h]--; living[h] == 0 {
			dead++
		}
		return false
	})
	for i := range p.deaths { // in the life of a rank that dies, too, or of none
		if p.deathOf(p.deaths[i].of) == nil {
			p.deaths[i].of = p.deaths[i].rank
		}
	}
}

// settle has the ranks agree on all values of a model before what is unread counts as
// read: as it does when they get new boxes, and in queues at any call.
func (p *plan) settle() {
	for i := range p.phases {
		ph := &p.phases[i]
		if p.object.sparse == "model" && len(ph.then) > 0 && (ph.queues() || ph.renews()) {
			ph.then = slices.Insert(ph.then, 0, collective{kind: vectorAllReduce, op: "max"})
		}
	}
}

// pickSparse is a vector in rows.
func pickSparse(rnd *rand.Rand) object {
	width := pick(rnd, 1, 3, 16)
	rows := pick(rnd, 1, 7, 50, 2000)
	dt := pick(rnd, libmalt.Float32, libmalt.Float64)
	return object{arrays: []libmalt.Array{{DType: dt, Count: rows * width, Row: width}}, sparse: pick(rnd, "model", "gradient")}
}

// pickDeaths kills up to all ranks but one.
func (p *plan) pickDeaths(rnd *rand.Rand) {
	dying := rnd.Perm(p.ranks)[:1+rnd.IntN(p.ranks-1)]
	together := rnd.IntN(3) == 0
	for i, r := range dying {
		d := p.pickDeath(rnd)
		switch {
		case d.how != "kill":
			d.how = "exit" // an abort ends the job
		case d.early(): // so does a death before all have met
			d.after = p.pickMoment(rnd)
		case rnd.IntN(2) == 0:
			d.how = "inside"
			d.after = pick(rnd, moment{word: scatters, value: rnd.IntN(p.rounds)}, moment{word: collectives, value: 1 + rnd.IntN(6)})
			d.after.delay = upTo(rnd, pick(rnd, 20*time.Microsecond, 400*time.Microsecond))
		}
		if d.rank, d.of = r, r; together && i > 0 && p.deaths[0].how == "kill" && rnd.IntN(4) > 0 {
			d.of, d.after, d.how = p.deaths[0].of, p.deaths[0].after, p.deaths[0].how
			d.after.delay += upTo(rnd, pick(rnd, time.Microsecond, time.Millisecond))
		}
		p.deaths = append(p.deaths, d)
	}
}

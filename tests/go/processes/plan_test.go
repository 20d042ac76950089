package processes

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"malt/graphs"
	"malt/libmalt/rule"
)

// plan is a schedule: everything that the ranks and the test do, a pure function
// of the seed. Every rank makes the plans of all, so that it knows which updates
// to expect.
type plan struct {
	lot
	ranks  int
	order  []int // in which they are started
	object object
	// impatient ranks let their waits run into timeouts, and then have them go on, or
	// make the calls again.
	impatient bool
	threads   []int // by rank: GOMAXPROCS
	phases    []planPhase
	end       ending
	chosen    int // the rank that stays, or leaves, at the end
	stops     [][]stop
	noise     bool // a second object is used in between
	exchanges bool // the object is a vector that hosts exchange
	intruders []intruder
	pokes     int     // signals without a meaning, which interrupt system calls
	deaths    []death // of different ranks
	least     int     // ranks with which the job goes on when others die; 0: one
	*weather          // nil: all ranks are on this machine

	// What a plan may ask for.
	bytes  int // of all boxes of the object, about
	rounds int // in a phase
}

// lot is what a plan is drawn by.
type lot struct {
	Seed    uint64
	Hosts   bool // several, on a network
	Survive bool // ranks die, and the others go on
}

// planPhase is a time in which ranks exchange updates in one way.
type planPhase struct {
	mode  rule.Rule
	graph *graphs.Graph
	syncs bool         // in bsp most rounds are syncs
	ops   [][]op       // by rank
	then  []collective // by all ranks, at the end of the phase
}

// op is one call of a rank.
type op struct {
	kind  opKind
	to    []int // of a scatter: nil for all receivers
	pause time.Duration
}

type opKind int

const (
	scatter   opKind = iota
	look             // Begin, End
	lookTwice        // Begin, End that keeps the updates, Begin, End
	foldSum
	foldMax
	foldReplace
	foldMean
	syncAll // scatter to all and gather, one call
)

// ending is how the last phase ends.
type ending int

const (
	together ending = iota // with a collective call
	apart                  // each leaves when it is done
	stay                   // as apart, but one stays and takes what the others left
	desert                 // one leaves, the others are in a collective call that needs it
	shut                   // each closes the object when it is done, and meets the others once more
)

// stop is one time that the test stops a rank.
type stop struct {
	after moment
	// hold is how long; 0: until each other rank has returned from a scatter, or
	// is where it needs this rank.
	hold time.Duration
}

// intruder is a process that wants to be a rank that there is already.
type intruder struct {
	rank  int
	after moment // in that rank's life
	token bool   // it knows the job's secret
}

// moment is when a word of a rank has reached a value, and a little later.
type moment struct {
	word  word
	value int
	delay time.Duration
}

// death is the end of a rank that does not leave.
type death struct {
	rank  int
	how   string // "kill": by the test at after. "exit", "abort": by itself after after.value scatters. "inside": see killInside. "off", "cut off": with its host
	after moment // in the rank's own life, or where others go on perhaps in that of
	of    int    // another, as do several deaths at once
}

// early deaths come before the rank has joined: who waits for it may only learn
// that it has not arrived.
func (d *death) early() bool {
	return d.how == "kill" && d.after.word == stage && d.after.value < joined
}

// deathOf is the death of a rank, nil where the plan has none.
func (p *plan) deathOf(rank int) *death {
	for i := range p.deaths {
		if p.deaths[i].rank == rank {
			return &p.deaths[i]
		}
	}
	return nil
}

// fatal tells whether anybody is to die, or to be out of reach.
func (p *plan) fatal() bool { return len(p.deaths) > 0 || p.weather != nil && p.lost != nil }

// agree tells whether a mean is what it should be.
func (p *plan) agree(got, want float64) bool {
	return got == want || p.weather != nil && math.Abs(got-want) <= 1e-6*want
}

// earlyDeaths tells whether the plan has any.
func (p *plan) earlyDeaths() bool {
	return slices.ContainsFunc(p.deaths, func(d death) bool { return d.early() })
}

// base is the clock at which phase i, from 0, begins: collective calls raise all
// ranks' clocks to the largest.
func (p *plan) base(i int) (clock uint64) {
	for _, ph := range p.phases[:i] {
		most := 0
		for r := range ph.ops {
			most = max(most, ph.scatters(r))
		}
		clock += uint64(most)
	}
	return clock
}

// scatters counts those of a rank.
func (ph *planPhase) scatters(rank int) (n int) {
	for _, o := range ph.ops[rank] {
		if o.kind == scatter || o.kind == syncAll {
			n++
		}
	}
	return n
}

// meant tells whether the scatter of that clock exists in the phase, and was for
// reader. base is the clock at which the phase began.
func (ph *planPhase) meant(sender int, base, clock uint64, reader int) bool {
	n := base
	for _, o := range ph.ops[sender] {
		if o.kind != scatter && o.kind != syncAll {
			continue
		}
		if n++; n == clock {
			return slices.Contains(ph.graph.Receivers(sender, clock), reader) && (o.to == nil || slices.Contains(o.to, reader))
		}
	}
	return false
}

// inLockstep tells whether all ranks make a sync at that clock of the phase, such
// as is an average in place. base is the clock at which the phase begins.
func (ph *planPhase) inLockstep(base, clock uint64) bool {
	if ph.mode.Kind != rule.BSP || ph.graph.String() != "all" {
		return false
	}
	for r := range ph.ops {
		n := base
		if !slices.ContainsFunc(ph.ops[r], func(o op) bool {
			if o.kind == scatter || o.kind == syncAll {
				n++
			}
			return o.kind == syncAll && n == clock
		}) {
			return false
		}
	}
	return true
}

// String is the plan in a few lines.
func (p *plan) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d ranks, %s", p.Seed, p.ranks, p.object)
	if p.Survive {
		fmt.Fprintf(&b, ", on_death=continue, min_ranks=%d", max(p.least, 1))
	}
	if p.impatient {
		b.WriteString(", impatient")
	}
	if p.noise {
		b.WriteString(", noise")
	}
	fmt.Fprintf(&b, ", threads %v, %d pokes", p.threads, p.pokes)
	fmt.Fprintf(&b, ", end %s", [...]string{"together", "apart", "with one staying", "with one deserting", "closing one by one"}[p.end])
	if p.end == stay || p.end == desert {
		fmt.Fprintf(&b, " (rank %d)", p.chosen)
	}
	for i, ph := range p.phases {
		fmt.Fprintf(&b, "\n  phase %d: %s, %s, scatters by rank", i+1, ph.mode, ph.graph)
		for r := range ph.ops {
			fmt.Fprintf(&b, " %d", ph.scatters(r))
		}
		for _, c := range ph.then {
			fmt.Fprintf(&b, ", %s", c)
		}
	}
	for r, stops := range p.stops {
		for _, s := range stops {
			fmt.Fprintf(&b, "\n  rank %d stopped at %s for %v", r, s.after, s.hold)
		}
	}
	for _, i := range p.intruders {
		fmt.Fprintf(&b, "\n  another rank %d comes at %s, token %v", i.rank, i.after, i.token)
	}
	for _, d := range p.deaths {
		fmt.Fprintf(&b, "\n  rank %d dies (%s) at %s of rank %d", d.rank, d.how, d.after, d.of)
	}
	if p.weather != nil {
		b.WriteString(p.weather.String())
	}
	return b.String()
}

func (m moment) String() string {
	names := [...]string{stage: "stage", scatters: "scatters", gathers: "gathers", collectives: "collectives", phase: "phase"}
	return fmt.Sprintf("%s %d + %v", names[m.word], m.value, m.delay)
}

package shards

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"malt/internal/say"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
)

// Scatter pushes what has changed, or what the keepers have no room for as soon as they have.
func (e *Engine) Scatter(clock uint64, weight float64) core.Stepper {
	return core.Locked{Lock: &e.mu, Of: e.o, Method: "scatter", By: e, Do: func() (bool, error) {
		e.totals.Add(e.o.Array(), weight, nil)
		e.core.scattered(clock)
		e.pass()
		return true, e.failed
	}}
}

// Gather waits until no rank that is present is more than slack clocks behind.
func (e *Engine) Gather(clock, slack uint64) core.Stepper {
	return core.Locked{Lock: &e.mu, Of: e.o, Method: "gather", By: e, Do: func() (bool, error) {
		e.pass()
		if err := cmp.Or(e.failed, e.ahead(), e.kept()); err != nil {
			return false, err
		}
		e.late = e.core.late(e.late[:0], clock-min(slack, clock), e.ranks.OrDead)
		if dead := e.ranks.Death(e.late); dead != nil {
			return false, e.lost(dead)
		}
		if len(e.late) > 0 {
			return false, nil
		}
		start := time.Now()
		for q := range e.shards {
			e.apply(q)
		}
		e.o.Brought(e.from, nil)
		e.news, e.age = e.core.gather(), e.core.age(clock, e.ranks.Of)
		e.o.Folded(time.Since(start))
		return true, nil
	}}
}

// apply makes part q of the array what its keeper has, and those of this rank's changes that are
// not there yet.
func (e *Engine) apply(q int) {
	s := &e.shards[q]
	e.srcs = append(e.srcs[:0], e.view(q))
	if s.way != nil {
		e.srcs = append(e.srcs, s.way)
	}
	e.srcs = append(e.srcs, e.totals.Last[s.lo:s.hi])
	e.totals.ApplyPart(e.o.Array(), s.lo, s.hi, e.srcs)
}

// kept is the error where a rank that keeps a part, or through which its sum comes, has gone.
func (e *Engine) kept() error {
	for _, r := range e.via {
		gone := e.o.Transport().State(r)
		if dead := core.DeathIn(gone); dead != nil {
			return e.lost(dead)
		}
		if gone != nil {
			return say.Errorf(gone, "%s: rank %d has left, from which others have a part of the vector", e.o.Called("gather"), r).
				Try("Have all ranks close the vector, or leave, at about the same time, or raise timeout=.")
		}
	}
	return nil
}

// lost is what the death of a rank means: what it kept has gone with it, or no longer comes.
func (e *Engine) lost(death error) error {
	dead, what := core.DeathIn(death), "a part of the vector is lost with it"
	switch {
	case dead == nil || !slices.Contains(e.via, dead.Rank):
		return death
	case dead.Rank >= len(e.shards):
		what = "it passed on a part of the vector"
	}
	dead = dead.During(e.o.Called("gather"))
	dead.Err = fmt.Errorf("%w; %s", dead.Err, what)
	return dead
}

// ahead is the error where another rank is in an era of which this one knows nothing.
func (e *Engine) ahead() error {
	for q := range e.shards {
		for i := range e.shards[q].in {
			if b := &e.shards[q].in[i]; b.has && b.held.Tag > e.era {
				return core.CountsNoMore(e.o, b.From())
			}
		}
	}
	return nil
}

// Level says that the clock of this rank has risen without changes.
func (e *Engine) Level(clock uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.core.lifted(clock)
	e.pass()
}

// Share adds the last changes to the total, too.
func (e *Engine) Share() ([]byte, uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.totals.Add(e.o.Array(), 1, nil)
	return e.totals.Sum, e.era
}

func (e *Engine) Late() []int                                 { return e.late }
func (e *Engine) Gathered() (ranks int, age uint64)           { return e.news, e.age }
func (e *Engine) AllReduce(core.Call, reduce.Op) core.Stepper { return nil }
func (e *Engine) Writers(late []int) []int                    { return late }

// Moved is the bytes of the last push to a rank that keeps a part.
func (e *Engine) Moved(rank int) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	if rank < len(e.shards) && rank != e.o.Rank() {
		return e.shards[rank].moved
	}
	return 0
}

// Count counts what went to each rank, and came, since it was called last.
func (e *Engine) Count(edges []core.Edge) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for r := range e.edges {
		edges[r].Add(e.edges[r])
	}
	clear(e.edges)
}

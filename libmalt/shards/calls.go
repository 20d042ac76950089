package shards

import (
	"fmt"
	"slices"

	"malt/internal/say"
	"malt/libmalt/engine"
	"malt/libmalt/internal/core"
)

// Apply makes the array what its keepers have, and this rank's changes that are not there yet.
func (e *Engine) Apply() {
	for q := range e.shards {
		e.apply(q)
	}
	e.O.Brought(e.from, nil)
}

// apply makes part q of the array what its keeper has, and those of this rank's changes that are
// not there yet.
func (e *Engine) apply(q int) {
	s := &e.shards[q]
	e.srcs = append(e.srcs[:0], e.view(q))
	if s.way != nil {
		e.srcs = append(e.srcs, s.way)
	}
	e.srcs = append(e.srcs, e.Totals.Last[s.lo:s.hi])
	e.Totals.ApplyPart(e.O.Array(), s.lo, s.hi, e.srcs)
}

// Gone is also the error where a rank that keeps a part, or through which its sum comes, has gone.
func (e *Engine) Gone(dead error) error {
	for _, r := range e.via {
		gone := e.O.Transport().State(r)
		if dead := core.DeathIn(gone); dead != nil {
			return e.lost(dead, "gather")
		}
		if gone != nil {
			return engine.HasLeft(say.Errorf(core.ErrLeft, "%s: rank %d has left, from which others have a part of the vector", e.O.Called("gather"), r), "shards")
		}
	}
	return e.lost(dead, "gather")
}

// lost is what the death of a rank means in a call: what it kept has gone with it, or no longer comes.
func (e *Engine) lost(death error, method string) error {
	dead, what := core.DeathIn(death), "it passed on a part of the vector"
	switch {
	case dead == nil || !slices.Contains(e.via, dead.Rank):
		return death
	case dead.Rank < len(e.shards) && e.O.Survives():
		what = fmt.Sprintf("part %d of the vector is lost with it: restart from a checkpoint, or take graph=all", dead.Rank)
	case dead.Rank < len(e.shards):
		what = fmt.Sprintf("part %d of the vector is lost with it", dead.Rank)
	}
	dead = dead.During(e.O.Called(method))
	dead.Err = fmt.Errorf("%w; %s", dead.Err, what)
	return dead
}

// Through appends the late ranks, and those through which this one has the parts in which their
// changes are missing.
func (e *Engine) Through(list, late []int) []int {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	for q := range e.shards {
		for _, r := range late {
			if e.core.lacks(q, r) {
				list = append(append(list, e.shards[q].via...), r)
			}
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Moved is the bytes of the last push to a rank that keeps a part.
func (e *Engine) Moved(rank int) int {
	e.Mu.Lock()
	defer e.Mu.Unlock()
	if rank < len(e.shards) && rank != e.O.Rank() {
		return e.shards[rank].moved
	}
	return 0
}

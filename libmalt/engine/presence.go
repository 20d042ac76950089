package engine

import (
	"cmp"

	"malt/internal/say"
	"malt/libmalt/internal/core"
)

// Here is until when an engine waits for a rank that is present. One that has ended is waited for
// until its last changes have come, with the clock of one that has closed the vector.
const Here = core.Ended

// Presence is which ranks an engine waits for. It looks before it takes updates. One that is in a
// collective call is waited for until all has come that it had changed before that call: another
// rank may have to pass it on. One that is dead is not, where the job goes on without it.
type Presence struct {
	until []uint64 // by rank: the call, or Here
	dead  []error
	left  []bool
}

// newPresence is of a job with so many ranks.
func newPresence(size int) Presence {
	return Presence{until: make([]uint64, size), dead: make([]error, size), left: make([]bool, size)}
}

// Look has it as it is now.
func (p *Presence) Look(o core.Object) {
	for r := range p.until {
		p.until[r], p.left[r], p.dead[r] = o.Until(r)
	}
}

// Of tells whether a rank takes part, Until, for which changes of it to wait: those before that call.
func (p *Presence) Of(rank int) bool      { return p.until[rank] == Here }
func (p *Presence) Until(rank int) uint64 { return p.until[rank] }

// Left tells whether a rank has left: it sends no more than what is there now.
func (p *Presence) Left(rank int) bool { return p.left[rank] }

// orDead is Until a dead rank would be waited for if it lived, and death whether one of these is dead.
func (p *Presence) orDead(rank int) uint64 {
	if p.dead[rank] != nil {
		return Here
	}
	return p.until[rank]
}

func (p *Presence) death(ranks []int) (dead error) {
	for _, r := range ranks {
		dead = cmp.Or(p.dead[r], dead)
	}
	return dead
}

// HasLeft is the error where a rank has left that others need, on that graph.
func HasLeft(said *say.Error, graph string) error {
	return said.At("a rank that has ended waits for ranks that need it, at most until its timeout").
		Try("Raise MALT_TIMEOUT, divide the data evenly, or take graph=all.").More(graph)
}

package engine

import (
	"cmp"

	"malt/libmalt/internal/core"
)

// Presence is which ranks an engine waits for. It looks before it takes updates: those that a rank
// has sent before it went into a collective call are then taken, though nobody waits for that rank.
// The same goes for the last ones of a rank that is dead, where the job goes on without it.
type Presence struct {
	here []bool // by rank, and dead and left
	dead []error
	left []bool
}

// newPresence is of a job with so many ranks.
func newPresence(size int) Presence {
	return Presence{here: make([]bool, size), dead: make([]error, size), left: make([]bool, size)}
}

// Look has it as it is now.
func (p *Presence) Look(o core.Object) {
	for r := range p.here {
		wait, dead := o.Present(r)
		done, left := false, false
		if dead == nil && !wait {
			done, left = o.Done(r)
		}
		p.here[r], p.dead[r] = dead == nil && wait || done && !o.Lost(r), dead
		p.left[r] = left
	}
}

// Of tells whether to wait for a rank: it takes part; or it is done, and its last changes have yet
// to come here, with the clock of one that has closed the vector.
func (p *Presence) Of(rank int) bool { return p.here[rank] }

// Left tells whether a rank has left: it sends no more than what is there now.
func (p *Presence) Left(rank int) bool { return p.left[rank] }

// orDead tells whether a rank would be waited for if it lived, and death whether one of these does not.
func (p *Presence) orDead(rank int) bool { return p.here[rank] || p.dead[rank] != nil }

func (p *Presence) death(ranks []int) (dead error) {
	for _, r := range ranks {
		dead = cmp.Or(p.dead[r], dead)
	}
	return dead
}

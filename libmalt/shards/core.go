package shards

import (
	"slices"

	"malt/internal/say"
	"malt/libmalt/engine"
	"malt/rdma"
)

const closed = engine.Closed

type reach = engine.Reach

// Core is what a rank knows of the changes in each part, and decides by. Part q is kept by rank q.
type Core struct {
	rank     int
	own      reach // up to where this rank has changed the array
	parts    []part
	gathered []uint64 // by rank: how many scatters were in every part at the last gather
}

// part is of one part, at the rank that keeps it or at another: at a worker.
type part struct {
	has    []reach // by rank: up to where its changes are in the sum; at a worker, in its view of it
	pushed uint64  // at a worker: the clock of the last push
	late   bool    // at a worker: there was more to push while that was on its way
	cut    bool    // at a worker: a rank has left through which it had the sum

	// Where this rank publishes it, be it the keeper or a worker that passes its view on:
	below []int   // ranks that have it through this one
	sent  []reach // what was in it when it was published last
	hurry bool    // at the keeper: a rank has more to push, whose last push has not been published
}

// NewCore is for a rank of so many, where all are at clock 0. It has as many parts as below, which
// has the ranks that get the sum of each through this one.
func NewCore(rank, size int, below [][]int) *Core {
	c := &Core{rank: rank, parts: make([]part, len(below)), gathered: make([]uint64, size)}
	for q := range c.parts {
		c.parts[q] = part{has: make([]reach, size), below: below[q], sent: make([]reach, size)}
	}
	return c
}

// Scattered says that this rank has changed what it will up to clock, by one scatter more.
func (c *Core) Scattered(clock uint64) {
	c.Lifted(clock)
	c.own.Scatters++
}

// Lifted says that this rank is at clock, without another change.
func (c *Core) Lifted(clock uint64) { c.own.Clock = max(c.own.Clock, clock) }

// toPush tells whether to push to part q what has changed since the last push; pushed says that
// this has been done. There is one push at a time on its way: where it is not in the view yet, the
// keeper has to hear that there is more. At the keeper the sum itself is the view. Where that comes no
// more, a rank that has closed the vector does without: that the keeper has taken the last push is enough.
func (c *Core) toPush(q int, taken bool) (push, more bool) {
	p := &c.parts[q]
	if q == c.rank {
		return c.own.Clock > p.has[q].Clock, false
	}
	there := c.seen(q) || taken && p.cut && c.own.Clock == closed
	return c.own.Clock > p.pushed && there, c.own.Clock > p.pushed && !there
}

// cut says that a rank has left, which is not the keeper, through which the sum of part q came.
func (c *Core) cut(q int) { c.parts[q].cut = true }

// waits says that the push which is due waits for the last one.
func (c *Core) waits(q int) { c.parts[q].late = true }

func (c *Core) pushed(q int) error {
	c.parts[q].late = false
	if q == c.rank {
		c.more(q, c.own.Clock, engine.Here)
		return c.add(q, c.own)
	}
	c.parts[q].pushed = c.own.Clock
	return nil
}

// seen tells whether the last push to part q is in the view.
func (c *Core) seen(q int) bool { return c.parts[q].has[c.rank].Clock >= c.parts[q].pushed }

// add says that a push of a rank has been added to the part that this one keeps.
func (c *Core) add(from int, now reach) error {
	p := &c.parts[c.rank]
	if now.Clock <= p.has[from].Clock || now.Scatters < p.has[from].Scatters {
		return say.Errorf(rdma.ErrCorrupt, "rank %d pushed %d changes up to clock %d, after %d up to clock %d",
			from, now.Scatters, now.Clock, p.has[from].Scatters, p.has[from].Clock)
	}
	p.has[from].Clock, p.has[from].Scatters = now.Clock, now.Scatters
	p.hurry = p.hurry || now.Clock == closed // it comes no more: see needed
	return nil
}

// more says that a rank has changes up to clock for the part that this one keeps, and is waited for
// until that collective call: so there are no more before it.
func (c *Core) more(from int, clock, until uint64) {
	p := &c.parts[c.rank]
	switch has := &p.has[from]; {
	case clock > has.Clock:
		p.hurry = p.hurry || has.Clock > p.sent[from].Clock
	case until != engine.Here:
		has.Call = max(has.Call, until)
	}
}

// take takes what is in a newer view of part q.
func (c *Core) take(q int, sum []reach) error {
	held := c.parts[q].has
	for r, now := range sum {
		if now.Before(held[r]) {
			return say.Errorf(rdma.ErrCorrupt, "of part %d came a sum with %d changes of rank %d to clock %d, after %d to clock %d",
				q, now.Scatters, r, now.Clock, held[r].Scatters, held[r].Clock)
		}
	}
	copy(held, sum)
	return nil
}

// due tells whether to publish the sum of part q. A worker passes on each view that it takes. At the
// keeper the rank that is farthest behind, of those from which more is to come, has come farther than
// when the sum was published last. So it is published once for all of them, and nobody waits for one
// that is away: but the others, when they are ahead of it, have to hear that all has come which it had
// changed before. It is also published for a rank that can push no more before, so that a slow rank keeps
// nobody's changes from the others. Where nothing more comes, any changes count.
func (c *Core) due(q int, until func(rank int) uint64) bool {
	p := &c.parts[q]
	if q != c.rank {
		return len(p.below) > 0 && !slices.Equal(p.has, p.sent)
	}
	least, before := uint64(closed), uint64(closed)
	news := false
	for r, has := range p.has {
		sent := p.sent[r]
		news = news || sent.Before(has)
		if has.Call < until(r) {
			least = min(least, has.Clock)
		}
		if has.Call < until(r) || has.Call > sent.Call {
			before = min(before, sent.Clock)
		}
	}
	if least == closed {
		return news
	}
	return p.hurry || least > before
}

// published says that the sum of part q has been, as things are.
func (c *Core) published(q int) {
	p := &c.parts[q]
	copy(p.sent, p.has)
	p.hurry = false
}

// newest is the clock of the changes in part q: that of the rank which has come farthest.
func (c *Core) newest(q int) (clock uint64) {
	for _, at := range c.parts[q].has {
		if at.Clock != closed {
			clock = max(clock, at.Clock)
		}
	}
	return clock
}

// Late appends to list the other ranks of which changes up to clock may be missing in a part, that they
// had made until then.
func (c *Core) Late(list []int, clock uint64, until func(rank int) uint64) []int {
	for r := range c.gathered {
		if at := c.least(r); r != c.rank && at.Clock < clock && at.Call < until(r) {
			list = append(list, r)
		}
	}
	return list
}

// Age is how far the rank that is farthest behind clock is, of those of which changes may be missing.
func (c *Core) Age(clock uint64, until func(rank int) uint64) (age uint64) {
	for r := range c.gathered {
		if at := c.least(r); at.Clock < clock && r != c.rank && at.Call < until(r) {
			age = max(age, clock-at.Clock)
		}
	}
	return age
}

// least is up to where the changes of a rank are in every part.
func (c *Core) least(rank int) reach {
	least := reach{Clock: closed, Scatters: closed, Call: closed}
	for q := range c.parts {
		has := c.parts[q].has[rank]
		least = reach{Clock: min(least.Clock, has.Clock), Scatters: min(least.Scatters, has.Scatters), Call: min(least.Call, has.Call)}
	}
	return least
}

// lacks tells whether part q is one that has the fewest changes of a rank.
func (c *Core) lacks(q, rank int) bool { return c.parts[q].has[rank].Clock == c.least(rank).Clock }

// Gathered says that what has come is in the array, and returns from how many other ranks there are
// changes in every part that were not there at the last one.
func (c *Core) Gathered() (ranks int) {
	for r, before := range c.gathered {
		if c.gathered[r] = c.least(r).Scatters; r != c.rank && c.gathered[r] > before {
			ranks++
		}
	}
	return ranks
}

// Needed appends to list the ranks for which this one, which has closed the vector, goes on: those
// that keep a part in which its last changes are not, or to which it has not pushed them if it cannot know
// that, and those that may still wait for a sum that comes through it.
func (c *Core) Needed(list []int, gone func(rank int) bool) []int {
	for r := range c.gathered {
		keeps := r < len(c.parts) && c.parts[r].has[c.rank].Clock != closed && !(c.parts[r].cut && c.parts[r].pushed == closed)
		waits := slices.ContainsFunc(c.parts, func(p part) bool { return slices.Contains(p.below, r) && p.has[r].Clock != closed })
		if (keeps || waits) && !gone(r) {
			list = append(list, r)
		}
	}
	return list
}

// Renew says that all ranks have the changes of all, which are at clock.
func (c *Core) Renew(clock uint64) {
	c.own.Scatters = 0
	clear(c.gathered)
	for q := range c.parts {
		p := &c.parts[q]
		engine.RenewReaches(p.has, clock)
		copy(p.sent, p.has)
		p.pushed, p.late = clock, false
	}
}

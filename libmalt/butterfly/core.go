package butterfly

import (
	"slices"

	"malt/graphs"
	"malt/internal/say"
	"malt/libmalt/engine"
	"malt/libmalt/internal/core"
	"malt/rdma"
)

const closed = engine.Closed

// over is more than the clock of any rank that may change more. From there to closed are the clocks of ranks
// whose changes have come to an end on their way, where rank clock − over has left.
const over = closed - 1<<core.RankBits

type reach = engine.Reach

// Core is what a rank knows of the changes that have come to it, and decides by.
type Core struct {
	rank     int
	stages   []graphs.Stage
	has      []reach   // by rank: up to where its changes have come
	gathered []uint64  // by rank: how many scatters were there at the last gather
	sent     [][]reach // by stage: of the ranks that this one stands for, as it was published last
}

// NewCore is for a rank of g, where all are at clock 0.
func NewCore(g *graphs.Graph, rank int) *Core {
	c := &Core{rank: rank, stages: g.Stages(rank), has: make([]reach, g.Size()), gathered: make([]uint64, g.Size())}
	for _, s := range c.stages {
		c.sent = append(c.sent, make([]reach, s.Ranks))
	}
	return c
}

// of is that of the ranks for which r, of the group, stands before a stage.
func (c *Core) of(stage, r int) []reach {
	s := c.stages[stage]
	return c.has[s.First(r):][:s.Ranks]
}

// others are those of this rank's group in a stage.
func (c *Core) others(stage int) (list []int) {
	for _, r := range c.stages[stage].Group {
		if r != c.rank {
			list = append(list, r)
		}
	}
	return list
}

// Scattered says that the changes of this rank are in its total up to clock, by one scatter more.
func (c *Core) Scattered(clock uint64) {
	c.Lifted(clock)
	c.has[c.rank].Scatters++
}

// Lifted says that this rank is at clock, without another change.
func (c *Core) Lifted(clock uint64) { c.has[c.rank].Clock = max(c.has[c.rank].Clock, clock) }

// take takes what is in a newer sum of a member of a stage.
func (c *Core) take(stage, from int, sum []reach) error {
	held := c.of(stage, from)
	for i, now := range sum {
		if now.Before(held[i]) {
			return say.Errorf(rdma.ErrCorrupt, "rank %d sent a sum with %d changes of rank %d to clock %d, after %d to clock %d",
				from, now.Scatters, c.stages[stage].First(from)+i, now.Clock, held[i].Scatters, held[i].Clock)
		}
	}
	copy(held, sum)
	return nil
}

// cut says that from, a member of a stage, has left: nothing more comes through it.
func (c *Core) cut(stage, from int) {
	held := c.of(stage, from)
	for i := range held {
		if held[i].Clock < over {
			held[i].Clock = over + uint64(from)
		}
	}
}

// Lost are the ranks whose changes come no more, since one on their way has left: through.
func (c *Core) Lost() (ranks []int, through int) {
	for r, at := range c.has {
		if at.Clock >= over && at.Clock != closed && (len(ranks) == 0 || at.Clock == over+uint64(through)) {
			ranks, through = append(ranks, r), int(at.Clock-over)
		}
	}
	return ranks, through
}

// waited says until which collective call this rank is waited for: it has changed no more before that.
func (c *Core) waited(until uint64) {
	if has := &c.has[c.rank]; until != engine.Here {
		has.Call = max(has.Call, until)
	}
}

// due tells whether to publish a stage: the rank that is farthest behind there, of those from which
// more is to come, has come farther than when it was published last. So it is published once for
// all of them, and nobody waits for one that is away: but a rank that is ahead of it has to hear
// that all has come which it had changed before. Where nothing more comes, any changes count. It is
// also published for a rank that has changed twice, or changes no more: a slow rank does not keep the
// changes of the others.
func (c *Core) due(stage int, until func(rank int) uint64) bool {
	first, now, sent := c.stages[stage].First(c.rank), c.of(stage, c.rank), c.sent[stage]
	newest := uint64(0) // clock of a rank that may wait
	for r, has := range c.has {
		if has.Clock < over && until(r) == engine.Here {
			newest = max(newest, has.Clock)
		}
	}
	least, before, news := uint64(closed), uint64(closed), false
	for i, has := range now {
		if has.Scatters > sent[i].Scatters+1 || has.Clock >= over && sent[i].Clock < over {
			return true
		}
		news = news || sent[i].Before(has)
		switch {
		case has.Call < until(first+i):
			least, before = min(least, has.Clock), min(before, sent[i].Clock)
		case has.Call > sent[i].Call && sent[i].Clock < newest:
			return true
		}
	}
	if before >= over {
		return news
	}
	return least > before
}

// published says that the stage has been, as things are.
func (c *Core) published(stage int) { copy(c.sent[stage], c.of(stage, c.rank)) }

// Late appends to list the ranks of which changes up to clock may be missing, that they had made until
// then.
func (c *Core) Late(list []int, clock uint64, until func(rank int) uint64) []int {
	for r, at := range c.has {
		if at.Clock < clock && at.Call < until(r) {
			list = append(list, r)
		}
	}
	return list
}

// Gathered says that what has come is in the array, and returns from how many other ranks there are
// changes that were not there at the last one.
func (c *Core) Gathered() (ranks int) {
	for r, at := range c.has {
		if r != c.rank && at.Scatters > c.gathered[r] {
			ranks++
		}
		c.gathered[r] = at.Scatters
	}
	return ranks
}

// Age is how far the rank that is farthest behind clock is, of those of which changes may be missing.
func (c *Core) Age(clock uint64, until func(rank int) uint64) (age uint64) {
	for r, at := range c.has {
		if at.Clock < clock && at.Call < until(r) {
			age = max(age, clock-at.Clock)
		}
	}
	return age
}

// Needed appends to list the ranks for which this one stands in its last stage, and whose last
// changes have not come. gone are ranks from which nothing more comes. Where nothing is due,
// and this one has closed the vector, no rank needs it any longer but for these.
func (c *Core) Needed(list []int, gone func(rank int) bool) []int {
	last := len(c.stages) - 1
	first := c.stages[last].First(c.rank)
	for i, at := range c.of(last, c.rank) {
		if at.Clock < over && !gone(c.through(first+i)) {
			list = append(list, first+i)
		}
	}
	return list
}

// through is the rank whose box brings the changes of r.
func (c *Core) through(r int) int {
	for _, s := range slices.Backward(c.stages) {
		if at := s.First(r) + c.rank%s.Ranks; at != c.rank {
			return at
		}
	}
	return c.rank
}

// Way appends to list the ranks by which the changes of r come, that one last.
func (c *Core) Way(list []int, r int) []int {
	for _, s := range slices.Backward(c.stages) {
		list = append(list, s.First(r)+c.rank%s.Ranks)
	}
	return list
}

// Renew says that all ranks have the changes of all, which are at clock.
func (c *Core) Renew(clock uint64) {
	engine.RenewReaches(c.has, clock)
	clear(c.gathered)
	for stage := range c.stages {
		c.published(stage)
	}
}

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

// due tells whether to publish a stage: the rank that is farthest behind there, of those that
// are present, has come farther than when it was published last. So it is published once for
// all of them, and nobody waits for one that is away. Where nothing more comes of those that
// are present, any counts. It is also published for a rank that has changed twice, or changes no
// more: a slow rank does not keep the changes of the others.
func (c *Core) due(stage int, present func(rank int) bool) bool {
	first, now, sent := c.stages[stage].First(c.rank), c.of(stage, c.rank), c.sent[stage]
	least, before := uint64(closed), uint64(closed)
	for i := range now {
		if now[i].Scatters > sent[i].Scatters+1 || now[i].Clock >= over && sent[i].Clock < over {
			return true
		}
		if present(first + i) {
			least, before = min(least, now[i].Clock), min(before, sent[i].Clock)
		}
	}
	if before >= over {
		return !slices.Equal(now, sent)
	}
	return least > before
}

// published says that the stage has been, as things are.
func (c *Core) published(stage int) { copy(c.sent[stage], c.of(stage, c.rank)) }

// Late appends to list the ranks that are present and have not come to clock.
func (c *Core) Late(list []int, clock uint64, present func(rank int) bool) []int {
	for r, at := range c.has {
		if at.Clock < clock && present(r) {
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

// Age is how far the rank that is farthest behind clock is, of those that are present.
func (c *Core) Age(clock uint64, present func(rank int) bool) (age uint64) {
	for r, at := range c.has {
		if at.Clock < clock && present(r) {
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

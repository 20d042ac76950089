package boxes

import (
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/rdma"
)

// ForRoute is b as its route sees it.
func (b *Boxes) ForRoute() core.Boxed { return carried{core.Carried{M: b.Member, Layout: b.runs}, b} }

type carried struct {
	core.Carried
	b *Boxes
}

func (c carried) Heard(rank int) (uint64, error) {
	if in := c.b.ch.clocks[rank]; in != nil {
		return in.Clock()
	}
	return 0, nil // it has died: see bury
}

func (c carried) InBox(clock, but uint64) (bool, error) {
	for i := range c.b.ch.sources {
		u, ok, err := c.b.ch.sources[i].exactly(clock)
		if err != nil || ok && u.Tag != but {
			return err == nil, err
		}
	}
	return false, nil
}

func (c carried) Settled() (late []int, generation uint64, err error) {
	if !c.b.inStep() {
		return nil, c.View().Generation, nil
	}
	return c.b.Job.Settled(c.b.Member)
}

func (c carried) Given(clock uint64) (rdma.Update, bool) {
	counted, u := c.b.Counted(c.b.Job.RouteRank())
	return u, counted == clock && u.Clock == clock
}

func (c carried) Put(stamp rdma.Stamp) error {
	b, err := c.b.ch.out.Begin()
	if err != nil {
		return err
	}
	reduce.Copy(b, c.b.Data)
	if err := c.b.ch.out.Commit(len(c.b.Data), stamp, nil); err != nil {
		return err
	}
	c.b.Head.Add(1)
	return nil
}

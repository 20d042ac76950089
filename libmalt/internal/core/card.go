package core

// The rest of Call, for the allreduce of a route.

func (c *Collective) Number() uint64     { return c.n }
func (c *Collective) Entered() bool      { return c.begun }
func (c *Collective) Late() []int        { return c.late }
func (c *Collective) SetLate(late []int) { c.late = late }

func (c *Collective) Card(b []byte, most int) []byte {
	var more bool
	if c.own, more = c.Job.news(c.own[:0], c.room(most)); more {
		return nil
	}
	if b = c.appendHeader(b, c.own); len(b) > most {
		return nil
	}
	return b
}

func (c *Collective) Unread() { c.Job.untell(c.own) }

func (c *Collective) Alike(card []byte) bool {
	op, total, _, _, err := parseHeader(card)
	return err == nil && op == c.op && total == uint64(len(c.Data))
}

func (c *Collective) Hear(ranks []int, view View, cards func(rank int) []byte, same bool) {
	c.among, c.view = ranks, view
	for _, r := range ranks {
		if !same {
			if _, _, objects, _, err := parseHeader(cards(r)); err == nil {
				c.Job.hearAll(r, objects)
			}
			continue
		}
		for _, n := range c.own {
			c.Job.hear(r, n.of, n.standing)
		}
	}
}

func (c *Collective) Elsewhere(ranks []int) bool {
	for _, r := range ranks {
		if id, n, there := c.Job.calling(r); there && n >= c.n && (n > c.n || id != c.about.ID&IDMask) {
			return true
		}
	}
	return false
}

func (c *Collective) Lost() bool {
	fault, died := c.fault, c.died
	err := c.Look()
	c.fault, c.died = fault, died
	return err != nil || len(c.late) < len(c.view.Ranks)-1
}

package processes

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// judge holds what the ranks reported, and how they ended, against the plan.
func (c *controller) judge() error {
	var errs []error
	logs := make([][]event, c.ranks)
	if c.Survive {
		for r := range logs {
			logs[r] = c.job.page.book(r, c.ranks).events()
		}
		if c.weather != nil {
			errs = append(errs, c.markLeftOut(logs))
		}
	}
	for r, p := range c.job.ranks {
		v := c.verdicts[r]
		if err := c.judgeEnd(p); err != nil {
			errs = append(errs, fmt.Errorf("rank %d %w; it wrote:\n%s", r, err, &p.output))
		}
		if v != nil {
			c.tally.addAll(v.Tally)
		}
		switch {
		case c.fell(r) && c.mayLive(r):
			if err := c.judgeLeftOut(v); err != nil {
				errs = append(errs, fmt.Errorf("rank %d: %w", r, err))
			}
		case c.fell(r):
			c.tally.add(map[string]string{"kill": "kills", "exit": "exits without leaving", "abort": "aborts", "inside": "kills inside a call", off: "ranks of a host that was powered off"}[c.deathOf(r).how], 1)
		case v == nil:
			errs = append(errs, fmt.Errorf("rank %d ended without a report", r))
		default:
			if err := c.judgeVerdict(r, v); err != nil {
				errs = append(errs, fmt.Errorf("rank %d: %w", r, err))
			}
		}
	}
	if c.Survive {
		errs = append(errs, c.judgeSurvivors(logs))
	}
	return errors.Join(errs...)
}

// judgeSurvivors looks through what all ranks have noted.
func (c *controller) judgeSurvivors(logs [][]event) error {
	fell := make([]bool, c.ranks)
	for r := range fell {
		fell[r] = c.fell(r)
	}
	return judgeSurvivors(c.plan, logs, fell, c.tally)
}

// fell tells whether a rank has been killed, or has ended itself as planned.
func (c *controller) fell(rank int) bool {
	return c.deathOf(rank) != nil && c.job.page.at(rank, died).Load() != 0
}

func (c *controller) judgeEnd(p *process) error {
	if code := p.cmd.ProcessState.ExitCode(); code != 0 && (!c.fell(p.rank) || c.mayLive(p.rank)) {
		return fmt.Errorf("ended with %v", p.cmd.ProcessState)
	}
	return nil
}

func (c *controller) judgeVerdict(r int, v *verdict) error {
	if c.Survive {
		return c.judgeSurvivor(v)
	}
	switch v.Outcome {
	case fine:
		if c.mustNotice() {
			return errors.New("has not noticed the death")
		}
		return nil
	case missed:
		return nil
	case absent:
		if c.anyFell() {
			return nil
		}
	case peer:
		if c.fell(v.Dead) || c.apart(r, v.Dead) {
			return c.judgeNotice(r, v)
		}
		// One that is to die later could not join for want of one that has died:
		// it is dead to those that wait for it.
		if v.Joining && c.earlyDeaths() && c.anyFell() {
			return nil
		}
	}
	return fmt.Errorf("%s", v.Text)
}

// judgeSurvivor: a rank goes on to the end unless too few are left. Then nobody gets through
// a last collective call that too few have begun.
func (c *controller) judgeSurvivor(v *verdict) error {
	fell, missing := 0, 0
	for r := range c.ranks {
		if c.fell(r) {
			fell++
			if c.job.page.at(r, collectives).Load() < int64(c.plan.collectives()) {
				missing++
			}
		}
	}
	switch {
	case v.Outcome == fine && (c.end == apart || c.ranks-missing >= c.least):
		return nil
	case v.Outcome == fine:
		return fmt.Errorf("has not noticed that fewer than %d ranks are left", c.least)
	case v.Outcome == peer && c.fell(v.Dead) && c.ranks-fell < c.least:
		c.tally.add("ranks that end since too few are left", 1)
		return nil
	}
	return fmt.Errorf("%s", v.Text)
}

// apart tells whether a cable between two ranks has been cut for good.
func (c *controller) apart(a, b int) bool { return c.parted.Load() != 0 && c.separates(a, b) }

func (c *controller) anyFell() bool {
	return slices.ContainsFunc(c.deaths, func(d death) bool { return c.fell(d.rank) })
}

// mustNotice: where the plan ends with collective calls nobody gets through them
// without a rank that died, unless it had entered the last of them.
func (c *controller) mustNotice() bool {
	for _, d := range c.deaths {
		if c.fell(d.rank) && (c.end == together || c.end == shut) && c.job.page.at(d.rank, collectives).Load() < int64(c.plan.collectives()) {
			return true
		}
	}
	return false
}

// collectives counts those that every rank makes.
func (p *plan) collectives() int {
	n := 1 // the making of the object
	if p.noise {
		n++
	}
	if p.end == shut {
		n++
	}
	for _, ph := range p.phases {
		for _, t := range ph.then {
			n++
			if t.kind == churn {
				n++ // its sync is counted, too
			}
		}
	}
	return n
}

// judgeNotice: the time since the death, as the test has seen it, which on a busy machine
// sees it late as well; or since the call began, or since the rank itself was continued.
func (c *controller) judgeNotice(r int, v *verdict) error {
	since := max(time.Duration(c.parted.Load()), v.Began, time.Duration(c.job.page.at(r, resumed).Load()))
	if c.fell(v.Dead) {
		since = max(since, c.job.ranks[v.Dead].end)
	}
	took := v.Ended - since
	c.tally.add("deaths noticed", 1)
	c.tally.addAll(tally{slowest: int(took.Milliseconds())})
	if took > c.promptly() {
		return fmt.Errorf("noticed the death after %v: %s", took, v.Text)
	}
	return nil
}

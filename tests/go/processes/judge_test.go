package processes

import (
	"errors"
	"fmt"
	"time"
)

// judge holds what the ranks reported, and how they ended, against the plan.
func (c *controller) judge() error {
	var errs []error
	fell := c.death != nil && c.job.page.at(c.death.rank, died).Load() != 0
	for r, p := range c.job.ranks {
		victim := fell && c.death.rank == r
		v := c.verdicts[r]
		if err := c.judgeEnd(p, victim); err != nil {
			errs = append(errs, fmt.Errorf("rank %d %w; it wrote:\n%s", r, err, &p.output))
		}
		if v != nil {
			c.tally.addAll(v.Tally)
		}
		if victim {
			continue
		}
		if v == nil {
			errs = append(errs, fmt.Errorf("rank %d ended without a report", r))
		} else if err := c.judgeVerdict(r, v, fell); err != nil {
			errs = append(errs, fmt.Errorf("rank %d: %w", r, err))
		}
	}
	if fell {
		c.tally.add(map[string]string{"kill": "kills", "exit": "exits without leaving", "abort": "aborts"}[c.death.how], 1)
	}
	return errors.Join(errs...)
}

func (c *controller) judgeEnd(p *process, victim bool) error {
	if code := p.cmd.ProcessState.ExitCode(); code != 0 && !victim {
		return fmt.Errorf("ended with %v", p.cmd.ProcessState)
	}
	return nil
}

func (c *controller) judgeVerdict(r int, v *verdict, fell bool) error {
	switch v.Outcome {
	case fine:
		if c.mustNotice(fell) {
			return errors.New("has not noticed the death")
		}
		return nil
	case missed:
		return nil
	case absent:
		if fell {
			return nil
		}
	case peer:
		if !fell {
			break
		}
		return c.judgeNotice(r, v)
	}
	return fmt.Errorf("%s", v.Text)
}

// mustNotice: where the plan ends with collective calls nobody gets through them
// without the rank that died, unless it had entered the last of them.
func (c *controller) mustNotice(fell bool) bool {
	return fell && (c.end == together || c.end == shut) && c.job.page.at(c.death.rank, collectives).Load() < int64(c.plan.collectives())
}

// collectives counts those that every rank makes.
func (p *plan) collectives() int {
	n := 1 // the making of the object
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

// judgeNotice: the time since the death, or since the call began, or since the
// rank itself was continued.
func (c *controller) judgeNotice(r int, v *verdict) error {
	since := max(time.Duration(c.job.page.at(c.death.rank, died).Load()), v.Began, time.Duration(c.job.page.at(r, resumed).Load()))
	took := v.Ended - since
	c.tally.add("deaths noticed", 1)
	if ms := int(took.Milliseconds()); ms > c.tally["ms until noticed at most"] {
		c.tally["ms until noticed at most"] = ms
	}
	if took > promptly {
		return fmt.Errorf("noticed the death after %v: %s", took, v.Text)
	}
	return nil
}

package processes

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"malt/internal/fleet"
	"malt/libmalt/rule"
)

// limit is how long a schedule may take: far longer than any does, but for one
// that hangs.
var limit = fleet.Patience

// controller carries out the tests' part of a plan.
type controller struct {
	*plan
	job    *job
	done   chan struct{} // closed when all ranks have ended
	held   []atomic.Bool // by rank: stopped by the test
	parted atomic.Int64  // when a cable was cut for good; 0: it has not been
	all    sync.WaitGroup

	mu       sync.Mutex
	verdicts []*verdict // by rank
	cuts     []span
	tally    tally
}

// runPlan carries out a schedule, on those hosts if it needs some. The error says
// all that there is to say.
func runPlan(l lot, hosts []*host) (tally, error) {
	p := newPlan(l)
	at := site{}
	if l.Hosts {
		at = site{hosts[:p.hosts], p.places, p.transport, p.encrypt, p.witness}
		if err := p.lay(at.hosts); err != nil {
			return nil, err
		}
		if at.witness {
			at.hosts = hosts[:p.hosts+1]
		}
	}
	j, err := startJob("schedule", p.ranks, l, p.order, at)
	if err != nil {
		return nil, err
	}
	c := &controller{plan: p, job: j, done: make(chan struct{}), held: make([]atomic.Bool, p.ranks), verdicts: make([]*verdict, p.ranks), tally: tally{}}
	if at.witness {
		c.tally["schedules with a witness"]++
	}
	err = c.run()
	if err = errors.Join(err, j.end(), calm(at.hosts)); err != nil {
		err = fmt.Errorf("%v\n%w", p, err)
	}
	return c.tally, err
}

func (c *controller) run() error {
	for r := range c.stops {
		c.all.Go(func() { c.stopAndResume(r) })
	}
	for _, d := range c.deaths {
		if d.how == "kill" {
			c.all.Go(func() { c.kill(d) })
		}
	}
	if c.pokes > 0 {
		c.all.Go(c.poke)
	}
	others := make(chan error, len(c.intruders)+mostFaults)
	for _, i := range c.intruders {
		c.all.Go(func() { others <- c.intrude(i) })
	}
	if c.weather != nil {
		for _, f := range c.faults {
			c.all.Go(func() { others <- c.befall(f) })
		}
		if c.voteless != nil {
			c.all.Go(c.killVoter)
		}
	}
	told := make(chan error, 1)
	go func() { told <- c.listen() }()
	var err error
	select {
	case err = <-told:
	case <-time.After(limit):
		err = fmt.Errorf("not done after %v\n%s", limit, c.job.stacks())
	}
	close(c.done)
	c.all.Wait()
	close(others)
	for failed := range others {
		err = errors.Join(err, failed)
	}
	if err != nil {
		return err
	}
	if longest(c.cuts) > mostCut { // this machine was too slow to end them in time
		c.tally.add("schedules that were cut for longer than planned", 1)
		return nil
	}
	return c.judge()
}

// listen hears all ranks' reports, gives them the orders that the plan asks for,
// and waits for their ends.
func (c *controller) listen() error {
	var hearing sync.WaitGroup
	for r := range c.ranks {
		hearing.Go(func() { c.hear(r) })
	}
	hearing.Wait()
	// All others have seen what they had to see.
	for _, p := range c.job.ranks {
		p.tell("end")
	}
	for _, p := range c.job.ranks {
		<-p.ended
	}
	if voter := c.job.voter; voter != nil {
		<-voter.ended // by itself
	}
	return nil
}

// hear gets a rank's verdict, if it lives to give one.
func (c *controller) hear(r int) {
	p := c.job.ranks[r]
	for range 2 {
		v := &verdict{}
		if err := p.hear(v); err != nil {
			if !errors.Is(err, io.EOF) {
				v = &verdict{Outcome: failure, Text: "its report: " + err.Error()}
				c.book(r, v)
			}
			return
		}
		c.book(r, v)
		if c.end != stay || c.chosen != r || v.Outcome != fine || v.Tally != nil {
			return
		}
		// The rank that stays waits until it is alone.
		for other, q := range c.job.ranks {
			if other != r {
				<-q.ended
			}
		}
		p.tell("alone")
	}
}

func (c *controller) book(r int, v *verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.verdicts[r] = v
}

// await waits for a moment in a rank's life; false when it has ended before.
func (c *controller) await(r int, m moment) bool {
	if !c.waitUntil(r, func() bool { return c.job.page.at(r, m.word).Load() >= int64(m.value) }) {
		return false
	}
	for until := now() + m.delay; now() < until; {
		if until-now() > 200*time.Microsecond {
			time.Sleep(100 * time.Microsecond)
		}
	}
	return true
}

// waitUntil looks until what is true; false when rank r, or the schedule, has
// ended before.
func (c *controller) waitUntil(r int, what func() bool) bool {
	for !what() {
		select {
		case <-c.done:
			return false
		case <-c.job.ranks[r].ended:
			return what()
		case <-time.After(50 * time.Microsecond):
		}
	}
	return true
}

func (c *controller) kill(d death) {
	if c.await(d.of, d.after) {
		c.job.ranks[d.rank].kill()
	}
}

func (c *controller) killVoter() {
	if c.await(c.voteless.of, c.voteless.after) {
		c.job.voter.signal(syscall.SIGKILL)
		c.mu.Lock()
		c.tally.add("kills of a witness", 1)
		c.mu.Unlock()
	}
}

// stopAndResume does the stops of one rank, one after the other.
func (c *controller) stopAndResume(r int) {
	p := c.job.ranks[r]
	for _, s := range c.stops[r] {
		if !c.await(r, s.after) || !p.stop() {
			return
		}
		c.held[r].Store(true)
		seen := 0
		if s.hold > 0 {
			select {
			case <-time.After(s.hold):
			case <-c.done:
			}
		} else {
			seen = c.holdWhileOthersScatter(r)
		}
		c.held[r].Store(false)
		p.resume()
		c.mu.Lock()
		c.tally.add("stops", 1)
		c.tally.add("scatters while a receiver was stopped", seen)
		c.mu.Unlock()
	}
}

// holdWhileOthersScatter keeps rank r stopped until every other rank has
// returned from two scatters that it began meanwhile (G4), or has come to where
// it must wait for r, or has no more to scatter. It counts those scatters. A
// scatter that waits for r makes the schedule hang here.
func (c *controller) holdWhileOthersScatter(r int) (seen int) {
	before := make([]int64, c.ranks)
	for o := range before {
		before[o] = c.job.page.at(o, scatters).Load()
	}
	for o := range before {
		if o == r {
			continue
		}
		c.waitUntil(o, func() bool { return c.job.page.at(o, scatters).Load() >= before[o]+2 || c.needsOthers(o) })
	}
	for o := range before {
		if i := c.job.page.at(o, phase).Load(); o != r && i > 0 && c.phases[i-1].mode.Kind != rule.NotifyAck {
			seen += int(max(0, c.job.page.at(o, scatters).Load()-before[o]-1))
		}
	}
	return seen
}

// needsOthers tells whether rank o may rightly not go on before a rank that is
// stopped does: anywhere but in a scatter, and in async in a gather.
func (c *controller) needsOthers(o int) bool {
	if c.held[o].Load() || c.job.page.at(o, stage).Load() != joined {
		return true
	}
	i := c.job.page.at(o, phase).Load()
	if i == 0 {
		return true // it makes the object
	}
	kind := c.phases[i-1].mode.Kind
	switch activityKind(c.job.page.at(o, activity).Load()) {
	case collecting, leaving, idle:
		return true
	case gathering:
		return kind != rule.Async
	case scattering:
		return kind == rule.NotifyAck
	}
	return false
}

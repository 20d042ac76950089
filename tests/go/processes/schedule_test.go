package processes

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// replay is the command that runs one schedule again.
func replay(l lot) string {
	which, on := "Replay", ""
	if l.Survive {
		which += "Survivors"
	}
	if l.Hosts {
		which, on = which+"OnHosts", `-exec "$PWD/.venv/bin/python $PWD/tests/net/beside.py" `
	}
	return fmt.Sprintf("MALT_SEED=%d go test -count=1 -v %s-run %s$ ./tests/go/processes", l.Seed, on, which)
}

// campaign runs schedules, several at a time.
type campaign struct {
	t       *testing.T
	hosts   []*host // none: on this machine
	survive bool
	mu      sync.Mutex
	tally   tally
}

// run takes seeds from next until it has no more. Several ranks per core make
// the schedules random.
func (c *campaign) run(next func() (uint64, bool)) {
	if err := warmUp(); err != nil {
		c.t.Fatal(err)
	}
	before, err := takeInventory()
	if err != nil {
		c.t.Fatal(err)
	}
	c.tally = tally{}
	var workers sync.WaitGroup
	work := func(hosts []*host) {
		for {
			seed, ok := next()
			if !ok {
				return
			}
			l := lot{seed, len(hosts) > 0, c.survive}
			tally, err := runPlan(l, hosts)
			c.book(l, tally, err)
		}
	}
	if len(c.hosts) == 0 {
		for range max(2, runtime.NumCPU()) {
			workers.Go(func() { work(nil) })
		}
	}
	for hosts := range slices.Chunk(c.hosts, mostHosts) {
		if len(hosts) == mostHosts {
			workers.Go(func() { work(hosts) })
		}
	}
	workers.Wait()
	if err := backTo(before); err != nil {
		c.t.Errorf("the test itself: %v", err)
	}
}

func (c *campaign) book(l lot, t tally, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.add("schedules", 1)
	c.tally.addAll(t)
	if err != nil {
		c.t.Errorf("%v\nagain: %s", err, replay(l))
	}
}

func (c *campaign) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.tally.String()
}

// TestSchedules runs 200 schedules over shared memory: G2, G3, G4, G5, G6 and
// G7, and what DESIGN section 7 says of joining, leaving and deaths.
func TestSchedules(t *testing.T) {
	schedules := uint64(200)
	if testing.Short() || raceDetector {
		schedules = 20
	}
	(&campaign{t: t}).runFirst(schedules)
}

// TestSchedulesOnHosts runs 60 over tcp, and over tcp and shared memory, between
// simulated hosts whose cables lose packets, are slow, are cut and restored, and
// whose connections are reset.
func TestSchedulesOnHosts(t *testing.T) {
	(&campaign{t: t, hosts: hostsFor(t)}).runFirst(60)
}

// runFirst runs the schedules of the first n seeds.
func (c *campaign) runFirst(n uint64) {
	var last atomic.Uint64
	c.run(func() (uint64, bool) {
		seed := last.Add(1)
		return seed, seed <= n
	})
	c.t.Log(c)
}

// TestSurvivors runs 200 in which up to all ranks but one die, and the others go on: G8, and
// G2, G3, G6 and G7 as before.
func TestSurvivors(t *testing.T) {
	schedules := uint64(200)
	if testing.Short() || raceDetector {
		schedules = 20
	}
	(&campaign{t: t, survive: true}).runFirst(schedules)
}

// TestSurvivorsOnHosts runs 40 such schedules between simulated hosts.
func TestSurvivorsOnHosts(t *testing.T) {
	(&campaign{t: t, hosts: hostsFor(t), survive: true}).runFirst(40)
}

// TestSoakSurvivorsOnHosts runs them for as long as MALT_SOAK says.
func TestSoakSurvivorsOnHosts(t *testing.T) {
	(&campaign{t: t, hosts: hostsFor(t), survive: true}).soak()
}

// TestSoakSurvivors runs such schedules for as long as MALT_SOAK says.
func TestSoakSurvivors(t *testing.T) { (&campaign{t: t, survive: true}).soak() }

// TestSoak runs schedules for as long as MALT_SOAK says.
func TestSoak(t *testing.T) { (&campaign{t: t}).soak() }

// TestSoakOnHosts does so on hosts.
func TestSoakOnHosts(t *testing.T) { (&campaign{t: t, hosts: hostsFor(t)}).soak() }

func (c *campaign) soak() {
	t := c.t
	text := os.Getenv("MALT_SOAK")
	if text == "" {
		t.Skip("MALT_SOAK is not set: make soak SOAK=10m")
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("MALT_SOAK=%s: expected a duration such as 10m", text)
	}
	var last atomic.Uint64
	last.Store(uint64(time.Now().UnixNano()))
	end := time.Now().Add(length)
	done := make(chan struct{})
	var telling sync.WaitGroup
	telling.Go(func() {
		for {
			select {
			case <-time.After(time.Minute):
				fmt.Printf("%s  %s\n", time.Now().Format(time.TimeOnly), c)
			case <-done:
				return
			}
		}
	})
	c.run(func() (uint64, bool) { return last.Add(1), time.Now().Before(end) })
	close(done)
	telling.Wait()
	t.Log(c)
}

// TestReplay runs the schedule of one seed.
func TestReplay(t *testing.T) { runAgain(t, nil, false) }

// TestReplaySurvivors does so where ranks survive others.
func TestReplaySurvivors(t *testing.T) { runAgain(t, nil, true) }

// TestReplaySurvivorsOnHosts does so on hosts.
func TestReplaySurvivorsOnHosts(t *testing.T) { runAgain(t, hostsFor(t), true) }

// TestReplayOnHosts does so on hosts.
func TestReplayOnHosts(t *testing.T) { runAgain(t, hostsFor(t), false) }

func runAgain(t *testing.T, hosts []*host, survive bool) {
	text := os.Getenv("MALT_SEED")
	if text == "" {
		t.Skip("MALT_SEED is not set: it is for a schedule that has failed")
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	l := lot{seed, len(hosts) > 0, survive}
	t.Log(newPlan(l))
	tally, err := runPlan(l, hosts)
	if err != nil {
		t.Error(err)
	}
	t.Log(tally)
}

package processes

import (
	"fmt"
	"os"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// replay is the command that runs one schedule again.
func replay(seed uint64) string {
	return fmt.Sprintf("MALT_SEED=%d go test -count=1 -v -run Replay ./tests/go/processes", seed)
}

// campaign runs schedules, several at a time.
type campaign struct {
	t     *testing.T
	mu    sync.Mutex
	tally tally
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
	for range max(2, runtime.NumCPU()) {
		workers.Go(func() {
			for {
				seed, ok := next()
				if !ok {
					return
				}
				tally, err := runPlan(seed)
				c.book(seed, tally, err)
			}
		})
	}
	workers.Wait()
	if err := backTo(before); err != nil {
		c.t.Errorf("the test itself: %v", err)
	}
}

func (c *campaign) book(seed uint64, t tally, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.tally.add("schedules", 1)
	c.tally.addAll(t)
	if err != nil {
		c.t.Errorf("%v\nagain: %s", err, replay(seed))
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
	var last atomic.Uint64
	c := &campaign{t: t}
	c.run(func() (uint64, bool) {
		seed := last.Add(1)
		return seed, seed <= schedules
	})
	t.Log(c)
}

// TestSoak runs schedules for as long as MALT_SOAK says.
func TestSoak(t *testing.T) {
	text := os.Getenv("MALT_SOAK")
	if text == "" {
		t.Skip("MALT_SOAK is not set: make soak SOAK=10m")
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("MALT_SOAK=%s: a duration such as 10m is expected", text)
	}
	var last atomic.Uint64
	last.Store(uint64(time.Now().UnixNano()))
	c := &campaign{t: t}
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
func TestReplay(t *testing.T) {
	text := os.Getenv("MALT_SEED")
	if text == "" {
		t.Skip("MALT_SEED is not set: it is for a schedule that has failed")
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(newPlan(seed))
	tally, err := runPlan(seed)
	if err != nil {
		t.Error(err)
	}
	t.Log(tally)
}

package membership

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"malt/rdma"
	"malt/rdma/vote"
)

// Random schedules of cuts, deaths and stops. Whatever happens there is one view of each
// generation, and nobody is confirmed whom others have gone on without. Once it is over, and
// those that are left of the newest view can decide, they have a view of exactly those that
// live, and all others know that they are out.
func TestSchedules(t *testing.T) {
	count, first := 1000, 0
	if testing.Short() {
		count = 100
	}
	if s := os.Getenv("MALT_SEED"); s != "" {
		first, _ = strconv.Atoi(s)
		count = 1
	}
	var sum tally
	for seed := first; seed < first+count && !t.Failed(); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			schedule(t, uint64(seed), &sum)
		})
	}
	t.Logf("%+v", sum)
	if count == 1000 && (sum.agreed < 300 || sum.confirmed < 300 || sum.expelled < 50 || sum.undecided < 30) {
		t.Error("the schedules do not reach all ends")
	}
}

// tally counts what the schedules came to.
type tally struct {
	agreed, undecided, confirmed, unconfirmed, expelled, views int

	slowest time.Duration
}

func schedule(t *testing.T, seed uint64, sum *tally) {
	layouts := [][]int{{1, 1}, {2, 1}, {2, 3}, {1, 1, 1}, {2, 1, 1}, {2, 2, 2}, {3, 1, 2}, {1, 1, 1, 1}, {2, 2, 1, 1}, {1, 1, 1, 1, 1}, {2, 1, 2, 1, 1}}
	simulate(t, seed, layouts[seed%uint64(len(layouts))], func(w *world) {
		pick := func(n int) int { return w.rand.IntN(n) }
		var calls sync.WaitGroup
		w.loss = float64(seed%4) / 20
		if seed%7 == 0 {
			w.flight = 100 * time.Millisecond
		}
		for range 3 + pick(12) {
			w.mu.Lock()
			a, b, what, p := pick(w.job.Hosts), pick(w.job.Hosts), pick(12), w.ranks[pick(len(w.ranks))]
			at, pause, power := pick(60), time.Duration(pick(700))*time.Millisecond, pick(3) == 0
			w.mu.Unlock()
			switch {
			case what == 0:
				w.apart(a)
			case what == 1:
				w.join(a)
			case what <= 4 && a != b:
				w.cut(a, b)
			case what <= 6 && a != b:
				w.heal(a, b)
			case what == 7:
				p.after(at, (*process).kill)
			case what == 8:
				p.after(at, (*process).stop)
			case what == 9:
				p.resume()
			case what == 10 && power: // a host loses its power
				w.blackout(a)
			default:
				calls.Go(func() {
					switch err := w.confirm(p.rank, time.Second); {
					case err == nil:
						w.mu.Lock()
						sum.confirmed++
						w.mu.Unlock()
					case errors.Is(err, rdma.ErrExpelled):
					default:
						w.mu.Lock()
						sum.unconfirmed++
						w.mu.Unlock()
					}
				})
			}
			time.Sleep(pause)
			synctest.Wait()
		}
		for _, p := range w.ranks {
			p.after(0, nil)
			p.resume()
		}
		all := make([]int, w.job.Hosts)
		for h := range all {
			all[h] = h
		}
		w.join(all...)
		took := w.until(fmt.Sprintf("seed %d: agreement", seed), 20*time.Second, w.settled)
		calls.Wait()
		w.mu.Lock()
		defer w.mu.Unlock()
		sum.views += len(w.decided) - 1
		sum.slowest = max(sum.slowest, took)
		if newest := w.newest(); w.able(newest) {
			sum.agreed++
		} else {
			sum.undecided++
		}
		for _, p := range w.ranks {
			if p.m.Out() != nil {
				sum.expelled++
			}
		}
	})
}

// newest is the view of the highest generation that a host knows which has a rank that
// lives. mu is held.
func (w *world) newest() (v vote.View) {
	for _, p := range w.ranks {
		if known := w.pages[p.host].view; p.alive && known.Generation > v.Generation {
			v = known
		}
	}
	return v
}

// able tells whether the hosts of a view that live can decide on the next one. mu is held.
func (w *world) able(v vote.View) bool {
	if v.Generation == 0 {
		return false // nobody lives
	}
	live, refused := vote.NewSet(w.job.Hosts), vote.Everyone(w.job.Hosts)
	for _, p := range w.ranks {
		if v.Ranks.Has(p.rank) && p.alive {
			live.Add(p.host)
		}
		if p.off {
			refused.Remove(p.host)
		}
	}
	return vote.Quorum(v.Hosts, live, vote.Sight{Dead: v.Hosts.Less(live).And(refused), Left: vote.NewSet(w.job.Hosts)})
}

// settled tells whether everything is as it has to be in the end.
func (w *world) settled() bool {
	w.mu.Lock()
	v := w.newest()
	able := w.able(v)
	live := make([]bool, len(w.ranks))
	for r, p := range w.ranks {
		live[r] = p.alive
	}
	w.mu.Unlock()
	if !able {
		return true
	}
	for r, p := range w.ranks {
		switch {
		case !live[r] && v.Ranks.Has(r):
			return false // it is yet to be left out
		case live[r] && v.Ranks.Has(r) && (!p.m.View().Members.Equals(v.Members) || p.m.Missing() != "" || p.m.Out() != nil):
			return false
		case live[r] && !v.Ranks.Has(r) && p.m.Out() == nil && slices.ContainsFunc(w.ranks, func(o *process) bool { return o.runs() && v.Ranks.Has(o.rank) }):
			return false
		}
	}
	return true
}

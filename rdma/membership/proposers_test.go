package membership

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"malt/rdma"
	"malt/rdma/vote"
)

// A proposer is killed at each step, and with it its host: others finish what it has begun.
func TestProposerIsKilled(t *testing.T) {
	took, steps := time.Duration(0), 0
	for over := false; !over && !t.Failed(); steps++ {
		simulate(t, uint64(steps), []int{2, 2, 2}, func(w *world) {
			time.Sleep(time.Second)
			w.ranks[2].after(steps, (*process).kill)
			w.ranks[3].kill()
			d := w.until(fmt.Sprint("killed at step ", steps), 3*time.Second, func() bool {
				return over || w.have([]int{0, 2}, 0, 1, 4, 5)() || w.have([]int{0, 2}, 0, 1, 2, 4, 5)() && !w.ranks[2].happened()
			})
			took = max(took, d)
			over = !w.ranks[2].happened() // the decision came before
		})
	}
	t.Logf("%d steps, at most %v", steps, took)
}

// A proposer is stopped at each step. Where its host has another rank nobody waits for it.
// Else a decision may have to: its kernel answers.
func TestProposerIsStopped(t *testing.T) {
	for _, hosts := range [][]int{{3, 1, 1}, {2, 1, 1}} {
		took, steps, waited := time.Duration(0), 0, 0
		for over := false; !over && !t.Failed(); steps++ {
			simulate(t, uint64(steps), hosts, func(w *world) {
				time.Sleep(time.Second)
				live := []int{0}
				for r := 1; r < len(w.ranks); r++ {
					if r != hosts[0]-1 {
						live = append(live, r)
					}
				}
				w.ranks[0].after(steps, (*process).stop)
				w.ranks[hosts[0]-1].kill()
				if hosts[0] == 2 {
					time.Sleep(time.Second)
					if !w.have([]int{1, 2}, live...)() {
						waited++
					}
				} else {
					took = max(took, w.until(fmt.Sprint("stopped at step ", steps), 2*time.Second, w.have([]int{0, 1, 2}, live...)))
				}
				over = !w.ranks[0].happened()
				w.ranks[0].resume()
				w.until(fmt.Sprint("goes on after step ", steps), time.Second, w.have([]int{0, 1, 2}, live...))
			})
		}
		if hosts[0] == 2 && waited == 0 {
			t.Error("no decision waits for a host that is stopped")
		}
		t.Logf("hosts of %v ranks: %d steps, at most %v, %d waited for it", hosts, steps, took, waited)
	}
}

// The network takes long, and many propose: they do not beat each other for ever.
func TestSlowNetwork(t *testing.T) {
	for _, flight := range []time.Duration{50, 100, 200} {
		flight *= time.Millisecond
		slowest := time.Duration(0)
		for seed := range uint64(20) {
			simulate(t, seed, []int{1, 2, 2, 1, 1}, func(w *world) {
				w.flight = flight
				w.ranks[2].kill()
				w.ranks[4].kill()
				w.ranks[6].kill()
				slowest = max(slowest, w.until("decided", 20*time.Second, w.have([]int{0, 1, 2, 3}, 0, 1, 3, 5)))
			})
		}
		t.Logf("frames take up to %v: decided within %v", flight, slowest)
	}
}

// The first frames of each kind are lost.
func TestFramesAreRepeated(t *testing.T) {
	for k := vote.First; k <= vote.Decided; k++ {
		t.Run(fmt.Sprint("kind ", k), func(t *testing.T) {
			simulate(t, 1, []int{2, 1, 1}, func(w *world) {
				until := time.Now().Add(time.Second)
				w.drop = func(_, _ *process, kind vote.Kind) bool { return kind == k && time.Now().Before(until) }
				time.Sleep(900 * time.Millisecond)
				w.ranks[1].kill()
				w.until("decided", time.Second, w.have([]int{0, 1, 2}, 0, 2, 3))
			})
		})
	}
}

// A host has promised, and hears nothing of what was decided.
func TestDecisionIsLost(t *testing.T) {
	simulate(t, 1, []int{2, 1, 1}, func(w *world) {
		w.drop = func(_, to *process, k vote.Kind) bool {
			return to.host == 2 && (k == vote.Accept || k == vote.Decided) && len(w.decided) < 3
		}
		w.ranks[1].kill()
		w.until("two hosts know", time.Second, w.have([]int{0, 1}, 0, 2, 3))
		w.mu.Lock()
		w.drop = nil
		w.mu.Unlock()
		t.Log(w.until("so does the third", time.Second, w.have([]int{2}, 0, 2, 3)))
	})
}

// A proposer is stopped when enough have accepted, and the cut for which it proposed heals:
// others find out what was decided, and who is left out.
func TestAcceptedIsFinished(t *testing.T) {
	simulate(t, 1, []int{2, 1, 1}, func(w *world) {
		stopped := false
		w.drop = func(_, to *process, k vote.Kind) bool {
			if k == vote.Accepted && to.rank == 0 && !stopped {
				stopped, to.cont = true, make(chan struct{})
			}
			return false
		}
		w.cut(0, 1)
		w.until("accepted", 2*time.Second, func() bool { return !w.ranks[0].runs() })
		w.heal(0, 1)
		t.Log(w.until("finished", time.Second, w.have([]int{0, 2}, 0, 1, 3)))
		if err := w.confirm(3, time.Second); err != nil {
			t.Error(err)
		}
		if err := w.confirm(2, time.Second); !errors.Is(err, rdma.ErrExpelled) {
			t.Error(err)
		}
	})
}

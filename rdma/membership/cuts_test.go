package membership

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"malt/rdma"
)

// A host falls silent: it is cut off, or loses its power. The others go on, and it does not.
func TestHostIsSilent(t *testing.T) {
	for _, power := range []bool{false, true} {
		for silent := range 3 {
			t.Run(fmt.Sprint(power, silent), func(t *testing.T) {
				simulate(t, 1, []int{1, 2, 1}, func(w *world) {
					time.Sleep(time.Second)
					w.apart(silent)
					var rest, others, those []int
					for _, p := range w.ranks {
						if p.host != silent {
							rest = append(rest, p.rank)
							others = append(others, p.host)
							continue
						}
						those = append(those, p.rank)
					}
					if power {
						w.blackout(silent)
					}
					t.Log(w.until("left out", 2*time.Second, w.have(others, rest...)))
					if power {
						return
					}
					for _, r := range those {
						want := "cannot be reached; 1 of 3 hosts can vote, and a decision takes 2"
						if m := w.ranks[r].m.Missing(); !strings.Contains(m, want) {
							t.Errorf("rank %d misses %q; expected %q", r, m, want)
						}
						if v := w.ranks[r].m.View(); v.Generation != 1 || w.ranks[r].m.Out() != nil {
							t.Errorf("rank %d has gone on to %v, %v", r, v, w.ranks[r].m.Out())
						}
					}
					w.join(silent)
					t.Log(w.until("told", time.Second, w.out(those...)), w.ranks[those[0]].m.Out())
					for _, r := range rest {
						if err := w.ranks[r].m.Out(); err != nil {
							t.Errorf("rank %d: %v", r, err)
						}
					}
				})
			})
		}
	}
}

// With a third vote one of two hosts goes on, and the other one knows what it lacks.
func TestTwoHostsAndAWitness(t *testing.T) {
	for _, away := range []int{0, 1} {
		simulate(t, 1, []int{1, 1, 1}, func(w *world) {
			w.job.Witnesses = 1
			for _, p := range w.ranks {
				p.m.c.Job.Witnesses = 1
			}
			w.apart(away)
			w.until("goes on", 2*time.Second, w.have([]int{1 - away, 2}, 1-away, 2))
			want := fmt.Sprintf("host %d (rank %d) and host 2 (a witness) cannot be reached; 1 of 3 hosts can vote, and a decision takes 2", 1-away, 1-away)
			if m := w.ranks[away].m.Missing(); m != want {
				t.Errorf("rank %d misses %q", away, m)
			}
		})
	}
}

// Of three hosts two end before either end is known, and one that is silent besides may come back. No view is
// decided in either case, and in the first one never will be.
func TestMostHostsEnd(t *testing.T) {
	simulate(t, 1, []int{1, 1, 1}, func(w *world) {
		w.ranks[1].kill()
		w.apart(2)
		final := func(rank int) func() bool {
			return func() bool {
				err, final := w.ranks[rank].m.Stuck()
				return final && errors.Is(err, rdma.ErrExpelled)
			}
		}
		w.until("misses both", 2*time.Second, func() bool { l := w.ranks[0].m.lack.Load(); return l != nil && l.Votes == 1 })
		time.Sleep(10 * time.Second)
		if final(0)() || final(2)() {
			t.Error("the other one may come back")
		}
		w.ranks[2].kill()
		w.join(2)
		w.until("waits for nobody", 2*time.Second, final(0))
		if g := w.ranks[0].m.View().Generation; g != 1 {
			t.Errorf("rank 0 has gone on to generation %d", g)
		}
	})
}

// Of two hosts neither goes on after a silence.
func TestTwoHostsAreSilent(t *testing.T) {
	simulate(t, 1, []int{2, 1}, func(w *world) {
		w.apart(0)
		time.Sleep(10 * time.Second)
		if sent := w.sent(); sent > 200 {
			t.Errorf("%d frames that nobody hears", sent)
		}
		if w.promised() {
			t.Error("ballots are taken for nothing")
		}
		for _, p := range w.ranks {
			other := 1 - p.host
			want := fmt.Sprintf("host %d (", other)
			if m := p.m.Missing(); !strings.HasPrefix(m, want) || !strings.HasSuffix(m, "1 of 2 hosts can vote, and a decision takes 2") {
				t.Errorf("rank %d misses %q", p.rank, m)
			}
			if l := p.m.lack.Load(); l == nil || len(l.Silent) != 1 || l.Silent[0] != other || l.Votes != 1 || l.Needed != 2 || l.Hosts != 2 {
				t.Errorf("rank %d lacks %+v", p.rank, l)
			}
			if err := w.confirm(p.rank, time.Second); err == nil || errors.Is(err, rdma.ErrExpelled) || !strings.Contains(err.Error(), fmt.Sprintf("from ranks %v:", p.m.on[other])) {
				t.Errorf("rank %d: %v", p.rank, err)
			}
			if g := p.m.View().Generation; g != 1 {
				t.Errorf("rank %d has gone on to generation %d", p.rank, g)
			}
		}
		sent := w.sent()
		time.Sleep(time.Second)
		if n := w.sent() - sent; n > 20 {
			t.Errorf("%d frames in a second for calls that are over", n)
		}
		w.join(0)
		time.Sleep(time.Second)
		for _, p := range w.ranks {
			if err := w.confirm(p.rank, time.Second); err != nil || p.m.Missing() != "" || p.m.View().Generation != 1 {
				t.Errorf("rank %d: %v, misses %q", p.rank, err, p.m.Missing())
			}
		}
		w.ranks[2].kill()
		t.Log(w.until("goes on after a crash", time.Second, w.have([]int{0}, 0, 1)))
		if err := w.confirm(0, time.Second); err != nil {
			t.Error(err)
		}
	})
}

// All ranks of a host learn at once that the others have gone on: one of them may end for it before another looks.
func TestRanksOfAHostAreOutTogether(t *testing.T) {
	simulate(t, 1, []int{2, 1, 1}, func(w *world) {
		w.ranks[0].m.Expelled(2)
		if err := w.ranks[1].m.Out(); !errors.Is(err, rdma.ErrExpelled) {
			t.Errorf("rank 1: %v", err)
		}
		if err := w.ranks[2].m.Out(); err != nil {
			t.Errorf("rank 2: %v", err)
		}
	})
	simulate(t, 1, []int{2, 1, 1}, func(w *world) {
		w.ranks[2].kill()
		w.ranks[3].kill()
		out := func(rank int) bool {
			_, final := w.ranks[rank].m.Stuck()
			return final || errors.Is(w.ranks[rank].m.Out(), rdma.ErrExpelled)
		}
		w.until("waits for nobody", 2*time.Second, func() bool { return out(0) || out(1) })
		if !out(0) || !out(1) {
			t.Error("one of two ranks of a host waits for hosts that have ended")
		}
	})
}

// One and two of three, two and two of four.
func TestG10Partitions(t *testing.T) {
	for _, c := range []struct {
		hosts, group []int
		goesOn       []int // ranks
	}{
		{[]int{1, 1, 1}, []int{0}, []int{1, 2}},
		{[]int{2, 1, 1}, []int{1}, []int{0, 1, 3}},
		{[]int{1, 1, 1, 1}, []int{0, 1}, nil},
		{[]int{1, 1, 1, 1, 1}, []int{0, 1}, []int{2, 3, 4}},
	} {
		t.Run(fmt.Sprint(c.hosts, c.group), func(t *testing.T) {
			simulate(t, 1, c.hosts, func(w *world) {
				w.apart(c.group...)
				if c.goesOn == nil {
					time.Sleep(10 * time.Second)
					if w.promised() {
						t.Error("ballots are taken for nothing")
					}
					for _, p := range w.ranks {
						if p.m.View().Generation != 1 {
							t.Errorf("rank %d has gone on", p.rank)
						}
						if err := w.confirm(p.rank, time.Second); err == nil {
							t.Errorf("rank %d is confirmed", p.rank)
						}
					}
					w.join(c.group...)
					w.until("all is well", time.Second, func() bool { return w.ranks[0].m.Missing() == "" })
					if err := w.confirm(0, time.Second); err != nil {
						t.Error(err)
					}
					return
				}
				var hosts []int
				for _, r := range c.goesOn {
					hosts = append(hosts, w.job.Of[r])
				}
				t.Log(w.until("goes on", 2*time.Second, w.have(hosts, c.goesOn...)))
				for _, p := range w.ranks {
					err := w.confirm(p.rank, time.Second)
					if goes := p.m.View().Generation > 1; goes != (err == nil) {
						t.Errorf("rank %d: %v", p.rank, err)
					}
				}
				w.join(c.group...)
				for _, p := range w.ranks {
					if p.m.View().Generation == 1 {
						w.until("told", time.Second, w.out(p.rank))
						if err := w.confirm(p.rank, time.Second); !errors.Is(err, rdma.ErrExpelled) {
							t.Errorf("rank %d: %v", p.rank, err)
						}
					}
				}
			})
		})
	}
}

// Of two hosts that cannot talk, and a third one that hears both, the higher one goes.
func TestPairs(t *testing.T) {
	for _, cut := range [][2]int{{0, 1}, {1, 2}, {0, 2}} {
		t.Run(fmt.Sprint(cut), func(t *testing.T) {
			simulate(t, 1, []int{1, 1, 1}, func(w *world) {
				w.cut(cut[0], cut[1])
				var rest []int
				for r := range 3 {
					if r != cut[1] {
						rest = append(rest, r)
					}
				}
				t.Log(w.until("the higher one goes", 3*time.Second, w.have(rest, rest...)))
				t.Log(w.until("it is told", time.Second, w.out(cut[1])))
			})
		})
	}
}

// Answers of hosts from before a call of Confirm do not count for it.
func TestConfirmAsksAnew(t *testing.T) {
	simulate(t, 1, []int{1, 1, 1}, func(w *world) {
		if err := w.confirm(2, time.Second); err != nil {
			t.Error(err)
		}
		w.ranks[2].stop()
		w.apart(2)
		w.until("the others go on", time.Second, w.have([]int{0, 1}, 0, 1))
		w.join(2)
		w.apart(2)
		w.ranks[2].resume()
		if err := w.confirm(2, doubtAfter/2); err == nil {
			t.Error("confirmed by the answers to the call before")
		}
	})
}

// A host of which all ranks are stopped is not left out. The others are told which host it is
// that they wait for, and go on when one of its ranks runs again, or all have been killed.
func TestHostIsStopped(t *testing.T) {
	for _, killed := range []bool{false, true} {
		simulate(t, 1, []int{1, 2, 2}, func(w *world) {
			stopped := w.ranks[1:3]
			for _, p := range stopped {
				p.stop()
			}
			time.Sleep(10 * time.Second)
			for _, r := range []int{0, 3, 4} {
				if err, _ := w.ranks[r].m.Stuck(); err != nil || w.promised() {
					t.Errorf("rank %d, where nothing has to be decided: %v", r, err)
				}
			}
			w.ranks[4].kill()
			const want = "host 1 (ranks 1, 2) did not answer"
			for _, r := range []int{0, 3} {
				m := w.ranks[r].m
				w.until("says for which host it waits", 3*time.Second, func() bool { return m.Missing() == want })
				if err, final := m.Stuck(); final || !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("rank %d: %v", r, err)
				}
			}
			if w.ranks[0].m.View().Generation != 1 {
				t.Error("a host that is stopped is left out")
			}
			alive := []int{0, 1, 2, 3}
			if killed {
				alive = []int{0, 3}
			}
			for _, p := range stopped {
				if killed {
					p.kill()
				} else {
					p.resume()
				}
			}
			t.Log(w.until("goes on", 2*time.Second, w.have([]int{0, 1, 2}, alive...)))
			w.until("waits no more", 2*time.Second, func() bool {
				err, _ := w.ranks[3].m.Stuck()
				return w.ranks[0].m.Missing() == "" && err == nil
			})
		})
	}
}

package membership

import (
	"fmt"
	"testing"
	"time"

	"malt/rdma/vote"
)

// A rank dies on a host that has others: its host tells, and nobody has to be silent.
func TestRankDies(t *testing.T) {
	simulate(t, 1, []int{2, 3, 1}, func(w *world) {
		time.Sleep(time.Second)
		if n := w.sent(); n > 0 {
			t.Errorf("%d frames where nothing has happened", n)
		}
		w.ranks[3].kill()
		t.Log(w.until("left out", time.Second, w.have([]int{0, 1, 2}, 0, 1, 2, 4, 5)), w.sent(), "frames")
		w.ranks[0].kill()
		t.Log(w.until("left out", time.Second, w.have([]int{0, 1, 2}, 1, 2, 4, 5)), w.sent(), "frames")
		for _, p := range w.ranks {
			if m := p.m.Missing(); p.runs() && m != "" {
				t.Errorf("rank %d misses %s", p.rank, m)
			}
		}
		sent := w.sent()
		time.Sleep(2 * time.Second)
		if n := w.sent() - sent; n > 100 {
			t.Errorf("%d frames after the decision", n)
		}
		sent = w.sent()
		time.Sleep(2 * time.Second)
		if n := w.sent() - sent; n > 0 {
			t.Errorf("%d frames long after the decision", n)
		}
	})
}

// A host of one rank dies, of three hosts and of two.
func TestHostDies(t *testing.T) {
	for _, hosts := range [][]int{{2, 2, 1}, {1, 1}, {2, 1}, {1, 1, 1, 1}} {
		for dies := range hosts {
			t.Run(fmt.Sprint(hosts, dies), func(t *testing.T) {
				simulate(t, 1, hosts, func(w *world) {
					time.Sleep(time.Second)
					var rest, others []int
					for _, p := range w.ranks {
						if p.host == dies {
							p.kill()
						} else {
							rest = append(rest, p.rank)
							others = append(others, p.host)
						}
					}
					t.Log(w.until("left out", time.Second, w.have(others, rest...)))
				})
			})
		}
	}
}

// Of five hosts one dies, and then two of those that have decided on the next view, before a fourth hears of it:
// it was stopped, or frames to it were lost. In the view before it misses too many votes, and in the next one none.
func TestDecidedBeforeMostHostsEnd(t *testing.T) {
	for _, stops := range []bool{true, false} {
		t.Run(fmt.Sprint(stops), func(t *testing.T) {
			simulate(t, 1, []int{1, 1, 1, 1, 1}, func(w *world) {
				late, lost := w.ranks[0], true
				w.drop = func(from, to *process, k vote.Kind) bool {
					if stops && to == late && k == vote.Accept && to.cont == nil && lost {
						to.cont = make(chan struct{})
					}
					return lost && (from == late && k == vote.Prepare || !stops && to == late && (k == vote.Accept || k == vote.Decided))
				}
				w.ranks[4].kill()
				w.until("decided", time.Second, w.have([]int{1, 2, 3}, 0, 1, 2, 3))
				w.ranks[2].kill()
				w.ranks[3].kill()
				time.Sleep(2*refusal + 2*askEach)
				w.mu.Lock()
				lost = false
				w.mu.Unlock()
				late.resume()
				t.Log(w.until("goes on", 2*time.Second, w.have([]int{0, 1}, 0, 1)))
				for _, p := range w.ranks[:2] {
					if _, final := p.m.Stuck(); final || p.m.Out() != nil || p.m.final.Load() {
						t.Errorf("rank %d is out: %v", p.rank, p.m.Out())
					}
				}
			})
		})
	}
}

// A host whose ranks have left is not missed, and its vote is not waited for.
func TestHostLeaves(t *testing.T) {
	for _, hosts := range [][]int{{2, 1}, {2, 2, 1}} {
		simulate(t, 1, hosts, func(w *world) {
			last := w.ranks[len(w.ranks)-1]
			last.m.Close()
			w.mu.Lock()
			last.left = true
			w.mu.Unlock()
			time.Sleep(2 * time.Second)
			if g, m := w.ranks[0].m.View().Generation, w.ranks[0].m.Missing(); g != 1 || m != "" {
				t.Errorf("generation %d, misses %q", g, m)
			}
			w.ranks[1].kill()
			var rest []int
			for r := range len(w.ranks) - 1 {
				if r != 1 {
					rest = append(rest, r)
				}
			}
			t.Log(w.until("goes on", time.Second, w.have([]int{0}, rest...)))
		})
	}
}

// leave has all ranks of a host leave in good order.
func (w *world) leave(host int) {
	for _, p := range w.ranks {
		if p.host == host {
			p.m.Close()
			w.mu.Lock()
			p.left = true
			w.mu.Unlock()
		}
	}
}

// Hosts that have left are not needed for a decision on the next death, however many they are.
func TestMostHostsLeave(t *testing.T) {
	simulate(t, 1, []int{1, 2, 2}, func(w *world) {
		w.leave(0)
		w.leave(1)
		w.ranks[4].kill()
		w.until("goes on", time.Second, w.have([]int{2}, 3))
		if err := w.confirm(3, time.Second); err != nil {
			t.Error(err)
		}
	})
}

// A rank is confirmed by the hosts that are left.
func TestConfirmWithoutThoseThatHaveLeft(t *testing.T) {
	simulate(t, 1, []int{1, 1, 1}, func(w *world) {
		w.leave(0)
		w.leave(1)
		if err := w.confirm(2, time.Second); err != nil {
			t.Error(err)
		}
	})
}

// A host that has promised something may have taken part in a decision, and its vote is missed
// when it has left. The error says so, also where only a rank of the own host is dead.
func TestHostsLeaveAfterAPromise(t *testing.T) {
	simulate(t, 1, []int{1, 1, 2}, func(w *world) {
		for host := range 2 {
			ballot := vote.Ballot(0).After(1-host, 3)
			asks := vote.Message{Kind: vote.Prepare, Generation: 2, Ballot: ballot, Hosts: vote.SetOf(3, 2), Lasted: 10 * unreachable}
			if err := w.ranks[host].m.Land(1-host, asks.Kind, 0, w.job.Append(nil, asks)); err != nil {
				t.Fatal(err)
			}
		}
		w.until("has promised", time.Second, w.promised)
		w.leave(0)
		w.leave(1)
		w.ranks[3].kill()
		const want = "host 0 (rank 0) and host 1 (rank 1) left; 1 of 3 hosts can vote, and a decision takes 2"
		w.until("says what it misses", time.Second, func() bool { return w.ranks[2].m.Missing() == want })
		time.Sleep(5 * time.Second)
		if v := w.ranks[2].m.View(); v.Generation != 1 || w.ranks[2].m.Missing() != want {
			t.Errorf("generation %d, misses %q", v.Generation, w.ranks[2].m.Missing())
		}
	})
}

// A firewall refuses for a host that lives. Where more than half is needed it goes once
// the doubt has lasted, as if it were cut off from the one that is lied to.
func TestRefusalThatLies(t *testing.T) {
	simulate(t, 1, []int{1, 1, 1}, func(w *world) {
		w.mu.Lock()
		w.ranks[0].gone[1] = true
		w.mu.Unlock()
		t.Log(w.until("decided", time.Second, w.have([]int{0, 2}, 0, 2)))
		w.until("told", time.Second, w.out(1))
	})
}

package membership

import (
	"fmt"
	"testing"
	"time"
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

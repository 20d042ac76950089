package processes

import (
	"fmt"
	"syscall"
	"testing"
	"time"
)

// The claims of the papers, and guarantees of the design, that only processes
// can show; each names its source. Time is never measured: what counts is what
// happens while a rank is stopped.

// trial is a job of claimants.
type trial struct {
	*job
	t *testing.T
	n int
}

func newTrial(t *testing.T, n int, c claim) *trial { return newTrialAt(t, n, c, site{}) }

func newTrialAt(t *testing.T, n int, c claim, at site) *trial {
	t.Helper()
	order := make([]int, n)
	for r := range order {
		order[r] = r
	}
	j, err := startJob("claim", n, c, order, at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.end(); err != nil {
			t.Error(err)
		}
	})
	return &trial{j, t, n}
}

// outcomes waits for the ranks' reports and their ends.
func (x *trial) outcomes() []outcome {
	x.t.Helper()
	hang := time.AfterFunc(limit, func() { fmt.Println(x.stacks()) })
	defer hang.Stop()
	all := make([]outcome, x.n)
	for r, p := range x.ranks {
		err := p.hear(&all[r])
		<-p.ended
		if err != nil || !p.cmd.ProcessState.Success() {
			x.t.Fatalf("rank %d: %v, %v; it wrote:\n%s", r, err, p.cmd.ProcessState, &p.output)
		}
	}
	return all
}

// until looks again and again; it fails the test where a rank has ended, or what
// has not come about for a very long time.
func (x *trial) until(what string, f func() bool) {
	x.t.Helper()
	for deadline := time.Now().Add(patience); !f(); time.Sleep(50 * time.Microsecond) {
		for _, p := range x.ranks {
			if p.hasEnded() || time.Now().After(deadline) {
				x.t.Fatalf("waited until %s\n%s\nrank %d wrote:\n%s", what, x.stacks(), p.rank, &p.output)
			}
		}
	}
}

func (x *trial) word(rank int, w word) int64 { return x.page.at(rank, w).Load() }

// others runs f for each rank but one, until it has been true for all at once.
func (x *trial) others(but int, f func(rank int) bool) bool {
	for r := range x.n {
		if r != but && !f(r) {
			return false
		}
	}
	return true
}

// whileStopped stops each rank in turn, when all are at work, for as long as f
// takes, and then ends the trial.
func (x *trial) whileStopped(f func(stopped int)) []outcome {
	x.t.Helper()
	for r := range x.n {
		x.until("all are at work", func() bool { return x.others(-1, func(o int) bool { return x.word(o, gathers) >= int64(10*(r+1)) }) })
		if !x.ranks[r].stop() {
			x.t.Fatalf("rank %d has ended:\n%s", r, &x.ranks[r].output)
		}
		f(r)
		x.ranks[r].resume()
	}
	for r := range x.n {
		x.page.at(r, enough).Store(1)
	}
	return x.outcomes()
}

// MALT section 3.4: halton sends N·log2 N updates where all sends N·(N-1). With
// 8 ranks the bytes that the transport counts are 7 : 3, to the byte.
func TestBytesOfAllAndHalton(t *testing.T) {
	const n, rounds, elements = 8, 20, 1000
	bytes := map[string]uint64{}
	for _, graph := range []string{"all", "halton"} {
		for _, o := range newTrial(t, n, claim{Graph: graph, Mode: "async", Elements: elements, Rounds: rounds}).outcomes() {
			bytes[graph] += o.Sent
		}
	}
	const unit = n * rounds * elements * 4
	if bytes["all"] != 7*unit || bytes["halton"] != 3*unit {
		t.Errorf("all sent %d bytes, halton %d; want 7 and 3 times %d", bytes["all"], bytes["halton"], unit)
	}
}

// MALT-2, notify-ack: a fast rank runs ahead of a receiver by one update at most,
// and does; nothing is ever overwritten. The ranks hold each scatter against how
// far its receivers are; here each rank in turn is so slow that it stands still.
func TestNotifyAckRunsAheadByOneUpdate(t *testing.T) {
	for _, graph := range []string{"all", "halton"} {
		t.Run(graph, func(t *testing.T) {
			x := newTrial(t, 8, claim{Graph: graph, Mode: "notify-ack", Elements: 5000})
			ahead := 0
			for _, o := range x.whileStopped(func(stopped int) {
				x.until("the others wait for the stopped rank", func() bool {
					return graph != "all" || x.others(stopped, func(o int) bool { return x.word(o, begun) > x.word(stopped, gathers) })
				})
			}) {
				ahead += o.Ahead
			}
			if ahead == 0 {
				t.Error("nobody ever ran ahead")
			}
		})
	}
}

// G2 and G3: an update is folded at most once, exactly once in the modes that
// allow no overwriting, and as a whole, while each rank in turn stands still in
// the middle of whatever it does. The ranks hold every gather against that; an
// update is large, so that writing and reading it take a while.
func TestG2G3UpdatesAreFoldedOnceAndWhole(t *testing.T) {
	for _, mode := range []string{"async", "ssp:2", "bsp", "notify-ack:2"} {
		t.Run(mode, func(t *testing.T) {
			x := newTrial(t, 4, claim{Graph: "all", Mode: mode, Elements: 1 << 16})
			x.whileStopped(func(stopped int) {
				before := x.word(stopped, gathers)
				x.until("the others are in the round after", func() bool {
					return x.others(stopped, func(o int) bool { return x.word(o, begun) > before })
				})
			})
		})
	}
}

// G4: in the overwriting modes a sender never waits for a receiver, not for one
// that is stopped either.
func TestG4StoppedRankHoldsUpNobody(t *testing.T) {
	const scattersEach = 50
	x := newTrial(t, 8, claim{Graph: "all", Mode: "async", Elements: 5000})
	x.whileStopped(func(stopped int) {
		before := make([]int64, x.n)
		for r := range before {
			before[r] = x.word(r, scatters)
		}
		x.until("all others have scattered to a stopped rank", func() bool {
			return x.others(stopped, func(o int) bool { return x.word(o, scatters) >= before[o]+scattersEach })
		})
	})
}

// G7, SSP: a rank runs ahead of the slowest that it hears from by s+1 clocks at most
// (its gather at clock c returns when they have reached c-s), and does. The ranks
// hold each gather against how far their senders are; the stopped rank shows that
// the slack is used. A scatter does not wait (G4), so all come that far. No
// update that is folded is older.
func TestG7SSPUsesItsSlackAndNoMore(t *testing.T) {
	for _, s := range []int64{0, 1, 4} {
		t.Run(fmt.Sprint(s), func(t *testing.T) {
			x := newTrial(t, 5, claim{Graph: "all", Mode: fmt.Sprint("ssp:", s), Elements: 5000})
			x.whileStopped(func(stopped int) {
				at := x.word(stopped, scatters) // or one more, if it was stopped inside a scatter
				x.until("the others have used up their slack", func() bool {
					return x.others(stopped, func(o int) bool { return x.word(o, scatters) >= at+s+1 })
				})
				most := x.word(stopped, begun) + s + 1
				if !x.others(stopped, func(o int) bool { return x.word(o, begun) <= most }) {
					t.Errorf("a rank is beyond clock %d, with rank %d stopped at %d", most, stopped, x.word(stopped, begun))
				}
			})
		})
	}
}

// DESIGN section 5: bsp on all gives the same bits on every rank, in every run,
// whatever the ranks' speeds.
func TestBSPGivesTheSameBits(t *testing.T) {
	for _, n := range []int{2, 3, 4, 5, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) { wantSameBits(t, n, site{}) })
	}
}

// The same over several hosts, with uneven numbers of ranks.
func TestBSPGivesTheSameBitsOnHosts(t *testing.T) {
	hosts := hostsFor(t)
	for _, places := range [][]int{{0, 1}, {1, 0, 1}, {0, 1, 2, 2}, {3, 1, 0, 1, 2}, {0, 0, 1, 0, 2, 1, 0, 3}} {
		t.Run(fmt.Sprint(places), func(t *testing.T) {
			wantSameBits(t, len(places), site{hosts: hosts, places: places, transport: "auto"})
		})
	}
}

func wantSameBits(t *testing.T, n int, at site) {
	t.Helper()
	var want string
	for range 2 {
		x := newTrialAt(t, n, claim{Graph: "all", Mode: "bsp", Elements: 10_007, Rounds: 25, Train: 7}, at)
		for r, o := range x.outcomes() {
			if want == "" {
				want = o.Hash
			}
			if o.Hash != want {
				t.Errorf("rank %d has a vector with hash %s, rank 0 of the first run %s", r, o.Hash, want)
			}
		}
	}
}

// G6: ranks that are killed all at once leave nothing; end looks.
func TestG6KilledJobLeavesNothing(t *testing.T) {
	x := newTrial(t, 8, claim{Graph: "all", Mode: "async", Elements: 100_000})
	x.until("all are at work", func() bool { return x.others(-1, func(o int) bool { return x.word(o, gathers) > 5 }) })
	for _, p := range x.ranks {
		p.signal(syscall.SIGKILL)
	}
}

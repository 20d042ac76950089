package membership

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"malt/rdma/vote"
)

// A job in one process and in virtual time: hosts with a page each, ranks that can be killed
// and stopped between any two of the things they do, and a network that can be cut between
// any two hosts. It judges each view that a host learns.

const (
	unreachable = 500 * time.Millisecond
	doubtAfter  = 400 * time.Millisecond // of a cut
	refusal     = 300 * time.Millisecond // after a death
	shortly     = time.Millisecond       // what a frame takes, at most, where nothing else is said
)

// world is guarded by mu, which nobody holds while a rank runs.
type world struct {
	t     testing.TB
	job   vote.Job
	pages []*page
	ranks []*process
	rand  *rand.Rand

	mu      sync.Mutex
	cuts    map[[2]int]time.Time // pairs of hosts that cannot talk, and since when
	decided map[uint64]judged
	faults  []string
	frames  int
	over    bool
	flight  time.Duration                             // of a frame, at most
	loss    float64                                   // of frames
	drop    func(from, to *process, k vote.Kind) bool // asked with mu held; nil: no frame
}

// judged is a view, and when it was first learned.
type judged struct {
	vote.View
	at time.Time
}

// simulate makes a job with so many ranks on each host and runs f in it.
func simulate(t *testing.T, seed uint64, hosts []int, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, job: vote.Job{Hosts: len(hosts)}, rand: rand.New(rand.NewPCG(seed, 1)), cuts: map[[2]int]time.Time{}, decided: map[uint64]judged{}, flight: shortly}
		for h, n := range hosts {
			for range n {
				w.job.Of = append(w.job.Of, h)
			}
		}
		for h := range hosts {
			w.pages = append(w.pages, &page{w: w, host: h, view: vote.View{Generation: 1, Members: w.job.Everyone()}})
		}
		for rank, h := range w.job.Of {
			p := &process{w: w, rank: rank, host: h, alive: true, gone: map[int]bool{}, closed: make([]bool, len(w.job.Of))}
			p.m = New(Config{Job: w.job, Rank: rank, Unreachable: unreachable}, home{w.pages[h], p}, cable{p})
			w.ranks = append(w.ranks, p)
		}
		w.decided[1] = judged{w.pages[0].view, time.Time{}}
		for _, p := range w.ranks {
			p.m.Start()
		}
		f(w)
		w.mu.Lock()
		w.over = true
		w.mu.Unlock()
		var closing sync.WaitGroup // where a rank has died, its goroutine ends in Close
		for _, p := range w.ranks {
			p.after(0, nil)
			p.resume()
			closing.Go(p.m.Close)
		}
		closing.Wait()
		for _, fault := range w.faults {
			t.Error(fault)
		}
		time.Sleep(time.Second) // frames in flight
	})
}

// blackout ends the ranks of a host, and nobody refuses for them.
func (w *world) blackout(host int) {
	for _, p := range w.ranks {
		if p.host == host {
			w.mu.Lock()
			p.off = true
			w.mu.Unlock()
			p.kill()
		}
	}
}

func pair(a, b int) [2]int { return [2]int{min(a, b), max(a, b)} }

// cut has two hosts not talk, and heal has them talk again. apart cuts a group of hosts off
// from the others, and join ends that, and all cuts within the group.
func (w *world) cut(a, b int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, there := w.cuts[pair(a, b)]; !there {
		w.cuts[pair(a, b)] = time.Now()
	}
}

func (w *world) heal(a, b int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.cuts, pair(a, b))
}

func (w *world) apart(group ...int) {
	for _, a := range group {
		for b := range w.job.Hosts {
			if !slices.Contains(group, b) {
				w.cut(a, b)
			}
		}
	}
}

func (w *world) join(group ...int) {
	for _, a := range group {
		for b := range w.job.Hosts {
			if a != b {
				w.heal(a, b)
			}
		}
	}
}

func (w *world) fault(format string, args ...any) {
	w.faults = append(w.faults, fmt.Sprintf(format, args...))
}

// promised tells whether a host has made a promise.
func (w *world) promised() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.pages, func(p *page) bool { return p.acceptor.Promised != 0 })
}

// until waits for something, and returns how long that took.
func (w *world) until(what string, limit time.Duration, ok func() bool) time.Duration {
	w.t.Helper()
	began := time.Now()
	for !ok() {
		if time.Since(began) > limit {
			w.t.Errorf("%s: not within %v; %s", what, limit, w)
			break
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
	}
	return time.Since(began)
}

// String says what the hosts know.
func (w *world) String() (text string) {
	for _, p := range w.pages {
		w.mu.Lock()
		text += fmt.Sprintf("host %d: generation %d, hosts %b, ranks %b, promised %d, accepted %d; ",
			p.host, p.view.Generation, p.view.Hosts, p.view.Ranks, p.acceptor.Promised, p.acceptor.Accepted)
		w.mu.Unlock()
	}
	return text
}

// have tells whether all ranks of some hosts that live have a view of exactly these ranks.
func (w *world) have(hosts []int, ranks ...int) func() bool {
	want := vote.SetOf(len(w.job.Of), ranks...)
	return func() bool {
		for _, p := range w.ranks {
			if slices.Contains(hosts, p.host) && p.runs() && !p.m.View().Ranks.Equals(want) {
				return false
			}
		}
		return true
	}
}

// sent is how many frames have been.
func (w *world) sent() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.frames
}

// out tells whether these ranks are.
func (w *world) out(ranks ...int) func() bool {
	return func() bool {
		for _, r := range ranks {
			if w.ranks[r].m.Out() == nil {
				return false
			}
		}
		return true
	}
}

// confirmed waits for the answer to Confirm.
func confirmed(ctx context.Context, m *Members) error {
	for answer := m.Confirm(ctx); ; time.Sleep(time.Millisecond) {
		known, late := answer()
		switch err := m.Out(); {
		case known:
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("no answer for rank %d from ranks %v: %w", m.c.Rank, late, ctx.Err())
		}
	}
}

// confirm calls Confirm of a rank, and judges what it says.
func (w *world) confirm(rank int, within time.Duration) error {
	began := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	err := confirmed(ctx, w.ranks[rank].m)
	if err == nil {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, v := range w.decided {
			if !v.Ranks.Has(rank) && v.at.Before(began) {
				w.fault("rank %d is confirmed, and generation %d had been decided without it", rank, v.Generation)
			}
		}
	}
	return err
}

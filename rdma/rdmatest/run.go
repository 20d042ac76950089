package rdmatest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
)

// Sizes are the numbers of ranks that the suite opens.
var Sizes = []int{1, 2, 3, 5, 8}

// Run proves the transport that open makes, with so many ranks; none: Sizes. open returns the n ranks of
// one job, by rank; the suite closes them, and then asserts that no goroutine is left.
func Run(t *testing.T, open func(t *testing.T, n int) []rdma.Transport, sizes ...int) {
	if len(sizes) == 0 {
		sizes = Sizes
	}
	for _, n := range sizes {
		t.Run(fmt.Sprintf("n=%d", n), func(t *testing.T) {
			name := "none"
			defer func() { t.Logf("transport %s with %d ranks", name, n) }()
			for _, c := range cases {
				if n < c.least {
					continue
				}
				t.Run(c.name, func(t *testing.T) {
					before := goroutines()
					ranks := open(t, n)
					if len(ranks) != n {
						t.Fatalf("open made %d transports, expected %d", len(ranks), n)
					}
					name = ranks[0].Name()
					defer noneLeft(t, before)
					ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
					defer cancel()
					j := &job{T: t, ctx: ctx, ranks: ranks}
					defer j.close()
					c.test(j)
				})
			}
		})
	}
}

// cases lists the tests of all files. least is the smallest number of ranks with
// which one makes sense.
var cases = slices.Concat(rankCases, createCases, newestCases, lockstepCases, queueCases, endCases, waitCases, wordCases, sharedCases, scheduleCases)

type testCase struct {
	name  string
	least int
	test  func(j *job)
}

// job is the ranks of one test.
type job struct {
	*testing.T
	ctx   context.Context
	ranks []rdma.Transport
}

func (j *job) n() int { return len(j.ranks) }

// settle lets what ranks have done arrive at the others: over a network that
// takes a while. A transport for which it does has a method Settle, at least in
// its tests; the suite calls it between a cause and a look at its effect, where
// it does not wait for the effect anyway.
func (j *job) settle() {
	if s, ok := j.ranks[0].(interface{ Settle() }); ok {
		s.Settle()
	}
}

func (j *job) close() {
	for _, t := range j.ranks {
		if err := t.Close(); err != nil {
			j.Errorf("rank %d: Close: %v", t.Rank(), err)
		}
	}
}

// others are all ranks but one.
func (j *job) others(rank int) []int {
	var o []int
	for r := range j.n() {
		if r != rank {
			o = append(o, r)
		}
	}
	return o
}

// every runs f for all ranks at once and waits; the test fails if one does.
func (j *job) every(f func(rank int) error) {
	j.Helper()
	errs := make([]error, j.n())
	var wg sync.WaitGroup
	for r := range j.n() {
		wg.Go(func() { errs[r] = f(r) })
	}
	wg.Wait()
	for r, err := range errs {
		if err != nil {
			j.Errorf("rank %d: %v", r, err)
		}
	}
	if j.Failed() {
		j.FailNow()
	}
}

// publish is Publish that must succeed.
func (j *job) publish(rank int, name string, s rdma.Spec, readers ...int) rdma.Outbox {
	j.Helper()
	out, err := j.ranks[rank].Publish(j.ctx, name, s, readers)
	if err != nil {
		j.Fatalf("rank %d: Publish %s: %v", rank, name, err)
	}
	return out
}

// subscribe is Subscribe to one sender that must succeed.
func (j *job) subscribe(rank int, name string, s rdma.Spec, sender int) rdma.Inbox {
	j.Helper()
	in, err := j.ranks[rank].Subscribe(j.ctx, name, s, []int{sender})
	if err != nil {
		j.Fatalf("rank %d: Subscribe %s of %d: %v", rank, name, sender, err)
	}
	if len(in) != 1 || in[0].From() != sender {
		j.Fatalf("rank %d: Subscribe %s of %d gave %d inboxes, from %d", rank, name, sender, len(in), in[0].From())
	}
	return in[0]
}

// star is a box of rank 0 that all others read; in[r] is nil for r = 0.
func (j *job) star(s rdma.Spec) (out rdma.Outbox, in []rdma.Inbox) {
	j.Helper()
	out = j.publish(0, "star", s, j.others(0)...)
	in = make([]rdma.Inbox, j.n())
	for _, r := range j.others(0) {
		in[r] = j.subscribe(r, "star", s, 0)
	}
	return out, in
}

// goroutines counts those that run this project's transports.
func goroutines() int {
	buf := make([]byte, 1<<20)
	for {
		n := runtime.Stack(buf, true)
		if n < len(buf) {
			buf = buf[:n]
			break
		}
		buf = make([]byte, 2*len(buf))
	}
	count := 0
	for stack := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(stack, "malt/rdma") {
			count++
		}
	}
	return count
}

// noneLeft allows goroutines that are just ending the time to do so.
func noneLeft(t *testing.T, before int) {
	t.Helper()
	for end := time.Now().Add(fleet.Patience); goroutines() > before; runtime.Gosched() {
		if time.Now().After(end) {
			buf := make([]byte, 1<<20)
			t.Fatalf("goroutines left behind:\n%s", buf[:runtime.Stack(buf, true)])
		}
	}
}

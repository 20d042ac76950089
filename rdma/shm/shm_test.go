package shm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"malt/internal/fleet"
	"malt/rdma"
	"malt/rdma/internal/mem"
	"malt/rdma/rdmatest"
	"malt/rdma/rendezvous"
)

// openWith makes n ranks in this process that wait as p says.
func openWith(t testing.TB, n int, p rendezvous.Policy) []rdma.Transport {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), fleet.Patience)
	defer cancel()
	job := fleet.NewStore()
	all := make([]rdma.Transport, n)
	errs := make([]error, n)
	var wg sync.WaitGroup
	for rank := range n {
		wg.Go(func() {
			all[rank], errs[rank] = Open(ctx, rendezvous.Config{Rank: rank, Size: n, Store: job, Token: "secret"})
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	for _, tr := range all {
		tr.(*Transport).WaitAs(p)
	}
	return all
}

// asleep waits in the kernel at once and without end: whatever passes under it
// does not depend on spinning, nor on waking up now and then.
var asleep = rendezvous.Policy{}

func TestConformance(t *testing.T) {
	for name, p := range map[string]func(n int) rendezvous.Policy{
		"as usual": func(n int) rendezvous.Policy { return policyFor(n, mem.Cores(0), false) },
		"asleep":   func(int) rendezvous.Policy { return asleep },
	} {
		t.Run(name, func(t *testing.T) {
			rdmatest.Run(t, func(t *testing.T, n int) []rdma.Transport { return openWith(t, n, p(n)) })
		})
	}
}

// open makes n ranks that are closed when the test ends.
func open(t testing.TB, n int) []rdma.Transport {
	all := openWith(t, n, asleep)
	t.Cleanup(func() {
		for _, tr := range all {
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
		}
	})
	return all
}

// box is one of rank 0 that all others read.
func newBox(t testing.TB, all []rdma.Transport, name string, s rdma.Spec) (rdma.Outbox, []rdma.Inbox) {
	t.Helper()
	var readers []int
	for rank := 1; rank < len(all); rank++ {
		readers = append(readers, rank)
	}
	out, err := all[0].Publish(context.Background(), name, s, readers)
	if err != nil {
		t.Fatal(err)
	}
	ins := make([]rdma.Inbox, len(all))
	for _, r := range readers {
		in, err := all[r].Subscribe(context.Background(), name, s, []int{0})
		if err != nil {
			t.Fatal(err)
		}
		ins[r] = in[0]
	}
	return out, ins
}

// send publishes a payload to all readers.
func send(t testing.TB, out rdma.Outbox, clock uint64, payload []byte) {
	t.Helper()
	b, err := out.Begin()
	if err == nil {
		err = out.Commit(copy(b, payload), rdma.Stamp{Clock: clock, Weight: 1}, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestDescriptorsAreGivenBackOnceMapped(t *testing.T) {
	all := open(t, 3)
	newBox(t, all, "warm", rdma.Spec{Bytes: 8})
	before := fleet.Holdings()
	out, ins := newBox(t, all, "box", rdma.Spec{Bytes: 1000})
	send(t, out, 1, bytes.Repeat([]byte{7}, 1000))
	for _, held := range fleet.Leaks(append(before, mappings(fleet.Holdings())...)) {
		t.Errorf("every reader has the box mapped, and there is still %s", held)
	}
	for _, in := range ins[1:] {
		u, ok, err := in.Next()
		if err != nil || !ok || len(u.Data) != 1000 || u.Data[999] != 7 {
			t.Errorf("got %d bytes, %v, %v", len(u.Data), ok, err)
		}
		if err := in.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := out.Close(); err != nil {
		t.Error(err)
	}
	if leaks := fleet.Leaks(before); len(leaks) > 0 {
		t.Errorf("left after closing the box: %q", leaks)
	}
}

// mappings are those among holdings.
func mappings(all []string) (m []string) {
	for _, h := range all {
		if strings.HasPrefix(h, "mapping") {
			m = append(m, h)
		}
	}
	return m
}

func TestCloseLeavesNothing(t *testing.T) {
	var before []string
	for round := range 3 { // what Go itself keeps is there after the first
		all := openWith(t, 4, asleep)
		out, ins := newBox(t, all, "box", rdma.Spec{Bytes: 1 << 20})
		send(t, out, 1, make([]byte, 1<<20))
		if _, ok, err := ins[2].Next(); !ok || err != nil {
			t.Fatal(ok, err)
		}
		// One that nobody fetches, words that not all make, a Sub that is open.
		if _, err := all[1].Publish(context.Background(), "unread", rdma.Spec{Bytes: 8}, []int{0, 2}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		if _, err := all[2].Words(ctx, "words", 3); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		if _, err := all[3].Sub(); err != nil {
			t.Fatal(err)
		}
		for _, tr := range all {
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
		}
		if round == 0 {
			before = fleet.Holdings()
			for _, h := range mappings(before) {
				t.Errorf("left: %s", h)
			}
		} else if leaks := fleet.Leaks(before); len(leaks) > 0 {
			t.Errorf("left after Close: %q", leaks)
		}
	}
}

func TestSlotsAreWriteProtected(t *testing.T) {
	for _, n := range []int{64, 1 << 20} { // mapped at once; when it is used
		all := open(t, 2)
		out, ins := newBox(t, all, "box", rdma.Spec{Bytes: n})
		send(t, out, 1, []byte("hello"))
		u, ok, err := ins[1].Next()
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		if fault(func() { u.Data[0] = 1 }) == nil {
			t.Errorf("a reader could write the sender's slot of %d bytes", n)
		}
		ins[1].Release(u.Seq) // writes the control block
	}
}

// Each slot is used, as each reader gets updates of its own and holds some. What is
// held stays as it is while more slots are mapped.
func TestSlotsAreMappedWhenTheyAreUsed(t *testing.T) {
	for _, n := range []int{20_000, 100_000} { // no whole pages; pages
		before := slotBytes(t)
		all := open(t, 8)
		out, ins := newBox(t, all, "box", rdma.Spec{Bytes: n})
		if got := slotBytes(t) - before; got > 8*2*os.Getpagesize() {
			t.Errorf("%d bytes: %d bytes of slots are mapped before any is used", n, got)
		}
		held := make([]rdma.Update, len(all))
		clock := uint64(0)
		update := func(r int) {
			clock++
			b, err := out.Begin()
			if err != nil {
				t.Fatal(err)
			}
			fill(b, clock)
			if err := out.Commit(n, rdma.Stamp{Clock: clock}, []int{r}); err != nil {
				t.Fatal(err)
			}
		}
		take := func(r int) {
			u, ok, err := ins[r].Next()
			if err != nil || !ok || u.Clock != clock {
				t.Fatal(u.Clock, ok, err)
			}
			held[r] = u
		}
		for r := 1; r < len(all); r++ {
			update(r)
			take(r)
			if got := slotBytes(t) - before; r == 1 && got > 2*leastPart*(n+2*os.Getpagesize()) {
				t.Errorf("%d bytes: %d bytes of slots are mapped when one is used", n, got)
			}
			update(r) // beside what is held
		}
		for r, u := range held[1:] {
			if !filled(u.Data, u.Clock) {
				t.Errorf("%d bytes: what reader %d holds has changed", n, 1+r)
			}
		}
		for r := 1; r < len(all); r++ {
			update(r)
			take(r)
			if !filled(held[r].Data, clock) {
				t.Errorf("%d bytes: reader %d got another update", n, r)
			}
		}
	}
}

// fill writes what only this clock writes, up to the last byte.
func fill(b []byte, clock uint64) {
	for i := range b {
		b[i] = byte(uint64(i) + clock)
	}
}

func filled(b []byte, clock uint64) bool {
	for i := range b {
		if b[i] != byte(uint64(i)+clock) {
			return false
		}
	}
	return true
}

// slotBytes is how much of slots this process has mapped.
func slotBytes(t *testing.T) (sum int) {
	t.Helper()
	maps, err := os.ReadFile("/proc/self/maps")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(maps)) {
		var from, to uint64
		if _, err := fmt.Sscanf(line, "%x-%x", &from, &to); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(line, "malt-box") {
			sum += int(to - from)
		}
	}
	return sum
}

func TestUnmapTakesOnlyWhatMapGave(t *testing.T) {
	tr := open(t, 1)[0]
	b, err := tr.Map(10_000)
	if err != nil {
		t.Fatal(err)
	}
	for what, bad := range map[string][]byte{"the heap's": make([]byte, 10), "a part": b[4096:], "nothing": nil, "cut": b[:10:10]} {
		if tr.Unmap(bad) == nil {
			t.Errorf("Unmap took %s", what)
		}
	}
	b[9_999] = 1 // still there
	if err := tr.Unmap(b); err != nil {
		t.Error(err)
	}
	if tr.Unmap(b) == nil {
		t.Error("Unmap took it twice")
	}
	empty, err := tr.Map(0)
	if err != nil || len(empty) != 0 {
		t.Fatalf("Map(0): %d bytes, %v", len(empty), err)
	}
	if err := tr.Unmap(empty); err != nil {
		t.Error(err)
	}
}

func TestMemoryThatIsNotThere(t *testing.T) {
	all := open(t, 2)
	if _, err := all[0].Map(1 << 46); !errors.Is(err, rdma.ErrNoMemory) {
		t.Errorf("Map: %v", err)
	}
	// A box of that size can be announced: slots are taken when they are used.
	out, ins := newBox(t, all, "huge", rdma.Spec{Bytes: 1 << 42})
	if b, err := out.Begin(); !errors.Is(err, rdma.ErrNoMemory) || b != nil {
		t.Errorf("Begin: %v", err)
	}
	if _, ok, err := ins[1].Next(); ok || err != nil {
		t.Errorf("Next: %v, %v", ok, err)
	}
	if _, err := all[0].Words(context.Background(), "many", maxWords+1); err == nil {
		t.Error("too many words were accepted")
	}
}

func TestSubsRunOut(t *testing.T) {
	tr := open(t, 1)[0]
	var subs []rdma.Transport
	for range rendezvous.Bells - 1 {
		s, err := tr.Sub()
		if err != nil {
			t.Fatal(err)
		}
		subs = append(subs, s)
	}
	if _, err := tr.Sub(); err == nil || !strings.Contains(err.Error(), "close a Sub first") {
		t.Errorf("one too many: %v", err)
	}
	if err := subs[3].Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Sub(); err != nil {
		t.Errorf("a doorbell that was given back: %v", err)
	}
}

func TestSubscribeTwice(t *testing.T) {
	all := open(t, 2)
	_, ins := newBox(t, all, "box", rdma.Spec{Bytes: 8})
	if _, err := all[1].Subscribe(context.Background(), "box", rdma.Spec{Bytes: 8}, []int{0}); err == nil || !strings.Contains(err.Error(), "close that Inbox first") {
		t.Errorf("while the first is open: %v", err)
	}
	if err := ins[1].Close(); err != nil {
		t.Fatal(err)
	}
	// It has had this box: it waits for the next of that name.
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := all[1].Subscribe(ctx, "box", rdma.Spec{Bytes: 8}, []int{0}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a box that it has had: %v", err)
	}
}

// Calls beside a Close give ErrClosed, and never touch memory that is gone.
func TestCloseBesideCalls(t *testing.T) {
	for range 20 {
		all := openWith(t, 2, asleep)
		out, ins := newBox(t, all, "box", rdma.Spec{Bytes: 8})
		words := make([]rdma.Words, 2)
		var wg sync.WaitGroup
		for r := range 2 {
			wg.Go(func() { words[r], _ = all[r].Words(context.Background(), "words", 1) })
		}
		wg.Wait()
		running := make(chan struct{}, 10)
		loop := func(f func() error) {
			wg.Go(func() {
				running <- struct{}{}
				for {
					if err := f(); err != nil {
						if !errors.Is(err, rdma.ErrClosed) && !errors.Is(err, rdma.ErrLeft) {
							t.Error(err)
						}
						return
					}
				}
			})
		}
		loop(func() error { return out.Advance(1) })
		loop(func() error { _, _, err := ins[1].Next(); return err })
		loop(func() error {
			ins[1].Release(^uint64(0))
			ins[1].Published()
			_, err := ins[1].Clock()
			return err
		})
		loop(func() error { words[0].Set(0, 1); words[0].Put(0, 2); _, err := words[0].Get(1, 0); return err })
		loop(func() error { return all[0].Wait(context.Background(), func() bool { all[1].Wake(); return false }) })
		loop(func() error {
			b, err := all[1].Map(1)
			if err != nil {
				return err
			}
			return all[1].Unmap(b)
		})
		for range 6 {
			<-running
		}
		for _, tr := range all {
			if err := tr.Close(); err != nil {
				t.Error(err)
			}
		}
		wg.Wait()
	}
}

// A rank that waits in Subscribe, Words or Wait through a Sub is not forgotten
// when the Sub is closed.
func TestClosingASubEndsItsWaits(t *testing.T) {
	all := open(t, 2)
	for what, wait := range map[string]func(s rdma.Transport) error{
		"Wait": func(s rdma.Transport) error { return s.Wait(context.Background(), func() bool { return false }) },
		"Subscribe": func(s rdma.Transport) error {
			_, err := s.Subscribe(context.Background(), "x", rdma.Spec{}, []int{1})
			return err
		},
		"Words": func(s rdma.Transport) error { _, err := s.Words(context.Background(), "x", 1); return err },
	} {
		s, err := all[0].Sub()
		if err != nil {
			t.Fatal(err)
		}
		got := make(chan error)
		go func() { got <- wait(s) }()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if err := <-got; !errors.Is(err, rdma.ErrClosed) {
			t.Errorf("%s: %v, expected ErrClosed", what, err)
		}
	}
}

func TestPolicy(t *testing.T) {
	if p := policyFor(4, 4, false); p.Spin == 0 || p.Yield != time.Millisecond || p.Sleep != nap {
		t.Errorf("a rank with a core: %+v", p)
	}
	if p := policyFor(5, 4, false); p.Spin != 0 || p.Yield == 0 || p.Yield > 50*time.Microsecond || p.Sleep != nap {
		t.Errorf("more ranks than cores must not look for long: %+v", p)
	}
	if p, alone := policyFor(1, 4, true), policyFor(1, 4, false); p.Spin != 0 || p.Yield*10 > alone.Yield || p.Sleep != nap {
		t.Errorf("a rank that waits for ranks elsewhere must sleep soon: %+v", p)
	}
}

package core

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unsafe"
)

// TestTraceLayout: python/malt/_ranks/seen.py reads these words by their numbers.
func TestTraceLayout(t *testing.T) {
	var n Now
	for _, f := range []struct {
		name     string
		at, want uintptr
	}{
		{"Magic", unsafe.Offsetof(n.Magic), 0}, {"Near", unsafe.Offsetof(n.Near), 4}, {"Room", unsafe.Offsetof(n.Room), 7},
		{"doing", unsafe.Offsetof(n.doing), 8}, {"syncs", unsafe.Offsetof(n.syncs), 9}, {"used", unsafe.Offsetof(n.used), 12}, {"recorded", unsafe.Offsetof(n.recorded), 13},
		{"since", unsafe.Offsetof(n.since), 14}, {"loss", unsafe.Offsetof(n.loss), 15}, {"late", unsafe.Offsetof(n.late), 16},
		{"dead", unsafe.Offsetof(n.dead), 32}, {"losses", unsafe.Offsetof(n.losses), 48}, {"mark", unsafe.Offsetof(n.mark), 49},
		{"place", unsafe.Offsetof(n.place), 70}, {"slept", unsafe.Offsetof(n.slept), 91},
		{"advice", unsafe.Offsetof(n.advice), 92}, {"host", unsafe.Offsetof(n.host), 113}, {"the end", unsafe.Sizeof(n), 134},
	} {
		if f.at != 8*f.want {
			t.Errorf("%s is word %d, and %d in seen.py", f.name, f.at/8, f.want)
		}
	}
	reader, err := os.ReadFile("../../../python/malt/_ranks/seen.py")
	if err != nil {
		t.Fatal(err)
	}
	magic, page := fmt.Sprintf("MAGIC = 0x%X\n", uint64(NowMagic)), fmt.Sprintf("<11Qq3Qd%dQ", unsafe.Sizeof(n)/8-16)
	for _, want := range []string{magic, page} {
		if !strings.Contains(string(reader), want) {
			t.Errorf("seen.py lacks %q", want)
		}
	}
}

// one is the clock of these tests when they begin.
func one() uint64 { return 1 }

// TestTraceClock: the clock of the events is that of the machine, also where the process has lost its core while that
// was read.
func TestTraceClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, reads := time.Now(), 0
		trace := NewTrace(new(Now), nil, func() uint64 {
			at := uint64(time.Since(start))
			if reads++; reads != 3 {
				time.Sleep(4 * time.Millisecond) // what another process takes
			}
			return at
		})
		if now := uint64(time.Since(start)); trace.clock() != now {
			t.Errorf("the clock is at %v, and that of the machine at %v", time.Duration(trace.clock()), time.Duration(now))
		}
	})
}

// record returns event number n as a reader finds it; false: it was being written, or is gone.
func record(e *Event, n uint64) (words [len(Event{})]uint64, ok bool) {
	for i := range e {
		words[i] = e[i].Load()
	}
	return words, words[0] == n && e[0].Load() == n
}

// TestTraceRing: while a rank overwrites its events, a reader gets each of them whole or not at all,
// and the number of the last one says how many it has missed.
func TestTraceRing(t *testing.T) {
	const room, all = 4, 200_000
	trace := NewTrace(new(Now), make([]Event, room), one)
	var reading sync.WaitGroup
	got := 0
	reading.Go(func() {
		for last := uint64(0); last < all; {
			last = trace.recorded.Load()
			for n := last - min(last, room) + 1; n <= last; n++ {
				words, ok := record(&trace.events[(n-1)%room], n)
				if !ok {
					continue
				}
				got++
				if v := words[4]; v != n || words[eventRanks] != 1<<(n%64) || words[eventText]&0xff != n%10+'0' {
					t.Errorf("event %d has value %v, ranks %#x and text %#x", n, v, words[eventRanks], words[eventText])
				}
			}
		}
	})
	for n := 1; n <= all; n++ {
		trace.Record(1, EventWait, []int{n % 64}, uint64(n), fmt.Sprint(n%10))
	}
	reading.Wait()
	if got < room || trace.recorded.Load() != all {
		t.Errorf("%d events read, %d recorded", got, trace.recorded.Load())
	}
}

// lateFor is a call that waits for ranks, of which one came last.
type lateFor struct {
	Stepper
	late []int
	last int
}

func (l lateFor) Late() []int   { return l.late }
func (l lateFor) CameLast() int { return l.last }

// TestTraceLast: who slept through the arrivals of several has waited for the last, or for those that have
// yet to come; who looked, or sleeps on for another reason, for each.
func TestTraceLast(t *testing.T) {
	trace := NewTrace(new(Now), make([]Event, 8), one)
	for _, c := range []struct {
		sleeps bool
		last   int
		still  []int // late at the end
		want   []int // that were waited for
	}{
		{true, 2, nil, []int{2}},
		{true, -1, nil, []int{1, 2, 3}},
		{true, 0, nil, []int{1, 2, 3}},
		{true, -1, []int{3}, []int{3}},
		{true, -1, []int{0}, []int{1, 2, 3}},
		{false, 2, []int{3}, []int{1, 2, 3}},
	} {
		l := lateness{counts: &Stats{Edges: make([]Edge, 4)}}
		op := lateFor{late: []int{1, 2, 3}, last: c.last}
		l.look(trace, op)
		if c.sleeps {
			l.asleep(trace, op)
		}
		for start := trace.clock(); trace.clock()-start < 1000; {
		}
		op.late = c.still
		l.end(trace, op)
		var got []int
		for r, e := range l.counts.Edges {
			if e.Waited > 0 {
				got = append(got, r)
			}
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("sleeps %t, last %d: waited for %v, not %v", c.sleeps, c.last, got, c.want)
		}
		if e, ok := record(&trace.events[trace.recorded.Load()-1], trace.recorded.Load()); !ok || e[eventRanks] != 0b1110 {
			t.Errorf("the event is %#x: it has all that were late, and is divided by who came when", e)
		}
	}
}

// TestTraceWaits: there is an event for each set of ranks that a wait was for, and what the rank
// shows lasts as long as the wait.
func TestTraceWaits(t *testing.T) {
	trace := NewTrace(new(Now), make([]Event, 8), one)
	l := lateness{counts: &Stats{Edges: make([]Edge, 201)}}
	for _, late := range [][]int{{1, 200}, {1, 200}, {200}} {
		l.look(trace, lateFor{late: late})
		l.asleep(trace, lateFor{late: late})
	}
	since := trace.since.Load()
	if since == 0 || trace.late[3].Load() != 1<<(200-192) || trace.late[0].Load() != 0 {
		t.Errorf("asleep since %d, for %#x and %#x", since, trace.late[0].Load(), trace.late[3].Load())
	}
	l.end(trace, lateFor{})
	if c := l.counts; c.WaitTime == 0 || c.Edges[1].Waited != 0 || (c.WaitTime-c.Edges[200].Waited).Abs() > time.Nanosecond {
		t.Errorf("waited %v, of that %v and %v for ranks", c.WaitTime, c.Edges[1].Waited, c.Edges[200].Waited)
	}
	if trace.since.Load() != 0 || trace.recorded.Load() != 2 {
		t.Errorf("asleep since %d after the wait, with %d events", trace.since.Load(), trace.recorded.Load())
	}
	if first, ok := record(&trace.events[0], 1); !ok || first[eventRanks] != 1<<1 || first[eventRanks+3] != 1<<8 {
		t.Errorf("the first event is %#x", first)
	}
}

// TestTraceUpdates: an update is told with its clock and bytes, and a fold with the ages.
func TestTraceUpdates(t *testing.T) {
	trace, m := NewTrace(new(Now), make([]Event, 8), one), &Member{ID: 3}
	trace.Scattered(trace.Begin(), m, 7, []int{0, 2}, 1<<40+5)
	trace.Folded(trace.Begin(), m, 9, []int{0, 2}, []byte{2, 0xff})
	sent, _ := record(&trace.events[0], 1)
	if sent[1] != EventSend|8<<8 || sent[4] != 3<<40|7 || sent[eventRanks] != 0b101 || sent[eventText] != 1<<40+5 {
		t.Errorf("the update is %#x", sent)
	}
	folded, _ := record(&trace.events[1], 2)
	if folded[1] != EventFold|2<<8 || folded[4] != 3<<40|9 || folded[eventRanks] != 0b101 || folded[eventText] != 0xff02 {
		t.Errorf("the fold is %#x", folded)
	}
	if trace.syncs.Load() != 1 || trace.bytes.Load() != 1<<40+5 {
		t.Errorf("%d syncs of %d bytes", trace.syncs.Load(), trace.bytes.Load())
	}
}

// TestTraceOff: without room nothing is recorded, and the values are shown all the same.
func TestTraceOff(t *testing.T) {
	trace := NewTrace(new(Now), nil, one)
	trace.Mark("epoch 3")
	trace.Log("loss", 0.5)
	trace.Log("accuracy", 0.9)
	if trace.Begin() != 0 || trace.recorded.Load() != 0 {
		t.Errorf("%d events", trace.recorded.Load())
	}
	if n := trace.mark.count.Load(); n != 2<<lengthBits|7 || trace.losses.Load() != 1 || math.Float64frombits(trace.loss.Load()) != 0.5 {
		t.Errorf("mark %#x, %d losses, the last %v", n, trace.losses.Load(), math.Float64frombits(trace.loss.Load()))
	}
}

// TestTraceParts: a part of a wait ends where the next one begins.
func TestTraceParts(t *testing.T) {
	trace := NewTrace(new(Now), make([]Event, 8), one)
	l := lateness{counts: &Stats{Edges: make([]Edge, 3)}}
	for i := range len(trace.events) {
		l.look(trace, lateFor{late: []int{1 + i%2}})
	}
	l.end(trace, lateFor{})
	for i := 1; i < len(trace.events); i++ {
		before, e := &trace.events[i-1], &trace.events[i]
		if end := before[2].Load() + before[3].Load(); end != e[2].Load() {
			t.Errorf("part %d ends at %d ns, and the next begins at %d", i, end, e[2].Load())
		}
	}
}

package main

import (
	"context"
	"errors"
	"math"
	"testing"
	"testing/synctest"
	"time"
)

func TestDeadlineZeroIsOver(t *testing.T) {
	d := within(0, time.Hour)
	defer d.end()
	if !errors.Is(d.Err(), context.DeadlineExceeded) {
		t.Errorf("Err = %v", d.Err())
	}
	select {
	case <-d.Done():
	default:
		t.Error("Done is open")
	}
}

func TestDeadlineComes(t *testing.T) {
	for _, c := range []struct {
		name string
		ms   int64
		want time.Duration
	}{
		{"own", 1500, 1500 * time.Millisecond},
		{"job's", -1, time.Hour},
		{"job's again", math.MinInt64, time.Hour},
		{"for ever", math.MaxInt64, maxTimeout},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				d := within(c.ms, time.Hour)
				defer d.end()
				if d.Err() != nil {
					t.Fatalf("over at once: %v", d.Err())
				}
				if at, ok := d.Deadline(); !ok || at.Sub(start) != c.want {
					t.Fatalf("Deadline = %v, %v", at.Sub(start), ok)
				}
				<-d.Done()
				if got := time.Since(start); got != c.want || d.Err() == nil {
					t.Errorf("Done after %v, want %v; Err = %v", got, c.want, d.Err())
				}
			})
		})
	}
}

// TestDeadlineServesContexts: what the layers below derive from it works, and
// without a goroutine, of which synctest would find one left.
func TestDeadlineServesContexts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := within(100, time.Hour)
		defer d.end()
		woken := make(chan time.Time, 1)
		start := time.Now()
		stopUnused := context.AfterFunc(d, func() { t.Error("a stopped AfterFunc ran") })
		defer context.AfterFunc(d, func() { woken <- time.Now() })()
		if !stopUnused() {
			t.Error("stop came too late")
		}
		child, cancel := context.WithCancel(d)
		defer cancel()
		if at := <-woken; at.Sub(start) != 100*time.Millisecond {
			t.Errorf("AfterFunc ran after %v", at.Sub(start))
		}
		<-child.Done()
		if !errors.Is(child.Err(), context.DeadlineExceeded) {
			t.Errorf("the child's error is %v", child.Err())
		}
	})
}

// BenchmarkDeadline is what a call pays that need not wait, as nobody asks then.
func BenchmarkDeadline(b *testing.B) {
	b.ReportAllocs()
	var ctx context.Context
	for b.Loop() {
		d := within(1000, time.Hour)
		ctx = d // it goes to other packages, so it is on the heap
		d.end()
	}
	if ctx.Err() != nil {
		b.Fatal("over")
	}
}

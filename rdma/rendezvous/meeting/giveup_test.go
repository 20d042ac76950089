package meeting

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"malt/rdma"
)

// A rank that gives up ends the meeting for all, by name.
func TestGivesUp(t *testing.T) {
	check := nothingLeft(t)
	t.Run("rank", func(t *testing.T) {
		for quitter := range 3 {
			t.Run(fmt.Sprint(quitter), func(t *testing.T) {
				t.Parallel()
				givesUp(t, quitter)
			})
		}
	})
	check()
}

func givesUp(t *testing.T, quitter int) {
	all := job(t, 4, "127.0.0.1:0") // the last one never comes
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	results := make(chan result)
	for r := range 3 {
		own := context.Background()
		if r == quitter {
			own = ctx
			all[r].Report = func(p Progress) {
				if slices.Equal(p.Absent, []int{3}) {
					cancel()
				}
			}
		}
		start(own, all[r], results)
	}
	for range 3 {
		r := <-results
		var dead *rdma.PeerError
		switch {
		case r.rank == quitter:
			if !errors.Is(r.err, context.Canceled) || !strings.Contains(r.err.Error(), "waited for rank 3 of 4") {
				t.Errorf("rank %d gave up: %v", r.rank, r.err)
			}
		case !errors.As(r.err, &dead) || dead.Rank != quitter || !strings.Contains(r.err.Error(), "gave up"):
			t.Errorf("rank %d, when rank %d gives up: %v", r.rank, quitter, r.err)
		}
	}
}

// A rank that cannot listen says so, before it is there.
func TestCannotListen(t *testing.T) {
	all := job(t, 2, "127.0.0.1:0")
	all[1].Interface = "none-of-that-name"
	by := meetAll(t, all, ascending(2))
	var dead *rdma.PeerError
	if !errors.As(by[0].err, &dead) || dead.Rank != 1 || !strings.Contains(by[0].err.Error(), "none-of-that-name") {
		t.Errorf("rank 0: %v", by[0].err)
	}
	if !errors.Is(by[1].err, rdma.ErrConfig) {
		t.Errorf("rank 1: %v", by[1].err)
	}
}

// A context may end at any moment: then nothing is left, and nobody hangs.
func TestCancelledAtAnyMoment(t *testing.T) {
	check := nothingLeft(t)
	for moment := range 40 {
		all := job(t, 3, "127.0.0.1:0")
		ctx, cancel := context.WithCancel(context.Background())
		results := make(chan result)
		for _, c := range all {
			start(ctx, c, results)
		}
		time.AfterFunc(time.Duration(moment)*50*time.Microsecond, cancel)
		for range all {
			r := <-results
			var dead *rdma.PeerError
			if r.err != nil && !errors.Is(r.err, context.Canceled) && !errors.As(r.err, &dead) {
				t.Errorf("moment %d, rank %d: %v", moment, r.rank, r.err)
			}
			if (r.err == nil) != (r.table != nil) || (r.err == nil) != (r.listeners != nil) {
				t.Errorf("moment %d, rank %d: %v with %v, %v", moment, r.rank, r.err, r.table, r.listeners)
			}
			for _, l := range r.listeners {
				l.Close()
			}
		}
	}
	check()
}

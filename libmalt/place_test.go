package libmalt_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"malt/libmalt"
	"malt/libmalt/routetest"
)

// waitedFor is what rank 0 says of rank 1, which has told these places, when it
// waits for it in a barrier.
func waitedFor(t *testing.T, places ...string) (said string) {
	t.Helper()
	told, over := make(chan struct{}), make(chan struct{})
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		if w.Rank() == 1 {
			for _, place := range places {
				w.At(place)
			}
			close(told)
			<-over
			return nil
		}
		defer close(over)
		<-told
		err := w.Barrier(routetest.Tried())
		said = fmt.Sprint(err)
		return wantErr(err, libmalt.ErrTimeout)
	})
	return said
}

// TestWaitTellsThePlace: the one told last, and as much of it as there is room for.
func TestWaitTellsThePlace(t *testing.T) {
	long := strings.Repeat("0123456789", 16)
	for _, c := range []struct {
		told []string
		want string
	}{
		{nil, "rank 1 (computing)"},
		{[]string{"train.py:12: v.sync()"}, "rank 1 (computing, its last call: train.py:12: v.sync())"},
		{[]string{"a much longer place than the next", "b.py:1"}, "rank 1 (computing, its last call: b.py:1)"},
		{[]string{"a.py:1", ""}, "rank 1 (computing)"},
		{[]string{long + "more"}, "rank 1 (computing, its last call: " + long + ")"},
		{[]string{"a\x1b[31m\nb\x00\xff é"}, "rank 1 (computing, its last call: a[31mb é)"},
		{[]string{long[1:] + "é"}, "rank 1 (computing, its last call: " + long[1:] + ")"}, // cut in the middle of a letter
	} {
		// A line that is too long goes on in the next one, after two blanks.
		if said := strings.ReplaceAll(waitedFor(t, c.told...), "\n  ", " "); !strings.Contains(said+"\n", "\nwaited for "+c.want+"\n") {
			t.Errorf("after %q: %q does not wait for %q", c.told, said, c.want)
		}
	}
}

// TestDisagreementTellsBothPlaces: those of the two calls that do not match.
func TestDisagreementTellsBothPlaces(t *testing.T) {
	for r, err := range jobErrors(t, 2, func(ctx context.Context, w *libmalt.World) error {
		w.At(fmt.Sprintf("train.py:%d", 10+w.Rank()))
		if w.Rank() == 0 {
			return w.Barrier(ctx)
		}
		_, err := w.AllGather(ctx, nil)
		return err
	}) {
		if want := "\nrank 0: malt.barrier() (train.py:10)\nrank 1: malt.allgather() (train.py:11)\n"; !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("rank %d: %q does not say %q", r, err, want)
		}
	}
}

// TestMissingRankTellsItsLastPlace: it has left in good order.
func TestMissingRankTellsItsLastPlace(t *testing.T) {
	errs := jobErrors(t, 2, func(ctx context.Context, w *libmalt.World) error {
		if w.Rank() == 1 {
			w.At("train.py:7: v.sync()")
			return nil
		}
		return w.Barrier(ctx)
	})
	if want := "rank 1 has ended, and malt.barrier needs it\nits last call: train.py:7: v.sync()\n"; !strings.Contains(fmt.Sprint(errs[0]), want) {
		t.Errorf("%q does not say %q", errs[0], want)
	}
}

package rule

import (
	"testing"
	"time"
)

// TestPace: a sender is slow that has made less than half of the reader's clocks in a window which
// was long enough, and had enough of them; the next window begins there.
func TestPace(t *testing.T) {
	start := time.Unix(1000, 0)
	for name, looks := range map[string][]struct {
		after        time.Duration
		own, senders uint64
		slow         bool
	}{
		"slow":         {{0, 100, 100, false}, {PaceWindow, 200, 149, true}},
		"half":         {{0, 100, 100, false}, {PaceWindow, 200, 150, false}},
		"short":        {{0, 100, 100, false}, {PaceWindow - 1, 200, 100, false}, {PaceWindow, 201, 101, true}},
		"few":          {{0, 100, 100, false}, {PaceWindow, 100 + PaceClocks - 1, 100, false}, {2 * PaceWindow, 100 + PaceClocks, 100, true}},
		"caught up":    {{0, 100, 10, false}, {PaceWindow, 200, 110, false}},
		"next window":  {{0, 0, 0, false}, {PaceWindow, 200, 0, true}, {PaceWindow + 1, 300, 0, false}, {2 * PaceWindow, 400, 200, false}},
		"first look":   {{0, 1 << 20, 0, false}},
		"sender ahead": {{0, 100, 300, false}, {PaceWindow, 200, 900, false}},
	} {
		var p Pace
		for _, l := range looks {
			if _, _, slow := p.Slow(start.Add(l.after), l.own, l.senders); slow != l.slow {
				t.Errorf("%s, after %v: slow %v, want %v", name, l.after, slow, l.slow)
			}
		}
	}
}

package rule

import (
	"math/rand/v2"
	"strings"
	"testing"
)

func TestParseAndString(t *testing.T) {
	for in, want := range map[string]string{
		"bsp": "bsp", "async": "async", "ssp:0": "ssp:0", "ssp:12": "ssp:12",
		"notify-ack": "notify-ack:1", "notify-ack:4": "notify-ack:4",
	} {
		m, err := Parse(in)
		if err != nil || m.String() != want {
			t.Errorf("Parse(%q) = %v, %v; want %s", in, m, err, want)
		}
		if again, err := Parse(m.String()); err != nil || again != m {
			t.Errorf("Parse(%q) gives another mode: %v, %v", m, again, err)
		}
	}
}

func TestParseRefuses(t *testing.T) {
	for in, want := range map[string]string{
		"ssp:-1": "from 0 to 65536", "ssp": "slack is missing", "ssp:": "whole number", "ssp:1.5": "whole number",
		"ssp:99999999999999999999": "whole number", "bsp:1": "takes no number", "async:0": "takes no number",
		"notify-ack:0": "at least 1", "notify_ack": `Did you mean "notify-ack"`, "aysnc": `Did you mean "async"`,
		"": "is not known", "BSP": "is not known", "ssp:2:3": "whole number",
	} {
		if _, err := Parse(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Parse(%q): %v; want %q in it", in, err, want)
		}
	}
}

// TestRules is the table of DESIGN section 5.
func TestRules(t *testing.T) {
	mode := func(s string) Rule {
		m, err := Parse(s)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, c := range []struct {
		mode  string
		own   uint64
		clock uint64
		waits bool
	}{
		{"async", 100, 0, false},
		{"bsp", 5, 4, true},
		{"bsp", 5, 5, false},
		{"bsp", 5, 6, false},
		{"ssp:2", 5, 2, true},
		{"ssp:2", 5, 3, false},
		{"ssp:2", 1, 0, false},
		{"ssp:0", 5, 4, true},
		{"ssp:0", 5, 9, false},
		{"notify-ack", 5, 4, false},
	} {
		if got := mode(c.mode).Waits(c.own, c.clock); got != c.waits {
			t.Errorf("%s at clock %d, the other at %d: waits %t, want %t", c.mode, c.own, c.clock, got, c.waits)
		}
	}
	for _, c := range []struct {
		mode       string
		own, clock uint64
		takes      bool
	}{
		{"async", 100, 1, true}, {"bsp", 5, 5, true}, {"bsp", 5, 4, false}, {"bsp", 5, 6, false},
		{"ssp:2", 5, 3, true}, {"ssp:2", 5, 2, false}, {"ssp:2", 5, 9, true}, {"notify-ack", 5, 1, true},
	} {
		if got := mode(c.mode).Takes(c.own, c.clock); got != c.takes {
			t.Errorf("%s at clock %d: takes clock %d %t, want %t", c.mode, c.own, c.clock, got, c.takes)
		}
	}
}

// TestG7SlackBoundsClocks (SSP) lets ranks on random graphs step in random
// order, each as soon as the rule lets it: per edge the reader is ahead of the
// sender by at most slack + 1, and no update that it takes is older than slack.
func TestG7SlackBoundsClocks(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 0))
		n, slack := 2+rnd.IntN(5), uint64(rnd.IntN(4))
		m := Rule{SSP, slack}
		clocks := make([]uint64, n)
		hears := make([][]int, n)
		for r := range hears {
			hears[r] = append(hears[r], (r+1)%n, rnd.IntN(n))
		}
		for step, moved := 0, 0; step < 2000; step++ {
			r := rnd.IntN(n)
			waits := false // a scatter raised the clock; the gather after it may wait
			for _, s := range hears[r] {
				waits = waits || s != r && m.Waits(clocks[r], clocks[s])
				if s != r && clocks[r] > clocks[s]+slack+1 {
					t.Fatalf("seed %d: rank %d at %d, its sender at %d, slack %d", seed, r, clocks[r], clocks[s], slack)
				}
			}
			if waits {
				continue
			}
			for _, s := range hears[r] {
				if c := clocks[s]; m.Takes(clocks[r], c) && c+slack < clocks[r] {
					t.Fatalf("seed %d: an update of clock %d taken at %d, slack %d", seed, c, clocks[r], slack)
				}
			}
			clocks[r]++
			moved++
			if step == 1999 && moved < 500 {
				t.Fatalf("seed %d: only %d of 2000 steps moved", seed, moved)
			}
		}
	}
}

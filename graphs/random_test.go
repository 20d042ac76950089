package graphs

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// These graphs are part of the file format, so to speak: ranks of different
// versions must draw the same. A change here breaks jobs, it is no update.
func TestRandomNeverChanges(t *testing.T) {
	for spec, want := range map[string]string{
		"random:1":   "lists:3/2/6/7/0/4/5/1",
		"random:3":   "lists:3,6,1/2,0,6/6,3,4/7,5,2/0,1,7/4,0,3/5,2,7/1,4,5",
		"random:3:7": "lists:3,6,4/2,0,3/5,6,7/7,4,5/6,1,0/0,2,7/1,5,3/4,2,1",
		"random:7":   "lists:3,7,1,2,6,5,4/2,6,5,4,0,3,7/6,5,4,0,3,7,1/7,1,2,6,5,4,0/0,3,7,1,2,6,5/4,0,3,7,1,2,6/5,4,0,3,7,1,2/1,2,6,5,4,0,3",
	} {
		g := parse(t, spec, 8)
		if got := formatLists(g.receivers); got != want {
			t.Errorf("%s of 8 is %s, want %s", spec, got, want)
		}
	}
}

// The generator against the first outputs of its published definition.
func TestSplitMixReference(t *testing.T) {
	rng := splitMix(1234567)
	for _, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := rng.next(); got != want {
			t.Errorf("next is %d, want %d", got, want)
		}
	}
	seen := make([]int, 3)
	for range 3000 {
		seen[rng.below(3)]++
	}
	for n, times := range seen {
		if times < 900 || times > 1100 {
			t.Errorf("%d came %d times of 3000", n, times)
		}
	}
}

func TestRandomIsRegularAndConnected(t *testing.T) {
	for size := 2; size <= 24; size++ {
		for k := 1; k < size; k++ {
			for seed := range 3 {
				g := parse(t, fmt.Sprintf("random:%d:%d", k, seed), size)
				for rank := range size {
					if in, out := len(g.Senders(rank, 1)), len(g.Receivers(rank, 1)); in != k || out != k {
						t.Fatalf("%s of %d: rank %d has %d receivers and %d senders", g, size, rank, out, in)
					}
				}
				if err := g.CheckConnected(); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestRandomDependsOnSeedAlone(t *testing.T) {
	a, again, b := parse(t, "random:3:1", 32), parse(t, "random:3:1", 32), parse(t, "random:3:2", 32)
	if formatLists(a.receivers) != formatLists(again.receivers) {
		t.Error("the same seed draws different graphs")
	}
	if formatLists(a.receivers) == formatLists(b.receivers) {
		t.Error("different seeds draw the same graph")
	}
	if zero := parse(t, "random:3:0", 32); zero.String() != "random:3" {
		t.Errorf("random:3:0 is called %s, want random:3", zero)
	}
	if last := parse(t, "random:3:18446744073709551615", 32); last.String() != "random:3:18446744073709551615" {
		t.Errorf("the largest seed is written %s", last)
	}
}

// Step 3 of the definition mixes: without it ranks would keep their places on a
// circle, and a graph of 256 ranks with 3 receivers would have a diameter above
// 80.
func TestRandomMixes(t *testing.T) {
	for seed := range 5 {
		g := parse(t, fmt.Sprintf("random:3:%d", seed), 256)
		if m := measure(t, g); m.Diameter > 9 || m.SecondEigenvalue > 0.8 {
			t.Errorf("%s of 256: %+v", g, m)
		}
	}
}

// A script for many ranks also runs alone.
func TestRandomAlone(t *testing.T) {
	g := parse(t, "random:4:5", 1)
	if len(g.Receivers(0, 1)) != 0 || g.String() != "random:4:5" {
		t.Errorf("%s of 1 sends to %v", g, g.Receivers(0, 1))
	}
}

func TestRandomLimit(t *testing.T) {
	_, err := Parse("random:33", MaxSize)
	wantError(t, err, "random:33 of 32768 ranks has 1081344 edges", "random:32 or less")
	g := parse(t, "random:32", MaxSize)
	if list := g.Receivers(MaxSize-1, 1); len(slices.Compact(sorted(list))) != 32 {
		t.Errorf("the last rank sends to %v", list)
	}
	if !strings.HasPrefix(g.String(), "random:32") {
		t.Error(g.String())
	}
}

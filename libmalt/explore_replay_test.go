//go:build explore

package libmalt

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"

	"malt/internal/explore"
	"malt/libmalt/rule"
)

// Replays, in every interleaving: whatever a run has folded, a replay of it folds the same and comes
// to its end. First each case is run in every interleaving, which gives all there is to
// record; then each of these recordings is replayed in every interleaving.

// playTape keeps what a rank records.
type playTape struct {
	*tape
	lines []string
}

func (t *playTape) Record(g rule.Gathered) error {
	text, err := json.Marshal(g)
	t.lines = append(t.lines, string(text))
	return err
}

// tape is that of a rank, of which the option recorded= has the lines, or is empty: then there is
// nothing to be replayed. nil: there is no such option.
func (p *play) tape(rank int) *playTape {
	for _, option := range strings.Fields(p.options) {
		text, ok := strings.CutPrefix(option, recorded)
		if !ok {
			continue
		}
		t := &tape{rank: rank, size: len(p.scripts)}
		if text != "" {
			t.replays = map[uint32]*rule.Replay{}
		}
		for r, lines := range strings.Split(text, "|") {
			for line := range strings.SplitSeq(lines, ";") {
				t.put(r, json.RawMessage(line))
			}
		}
		return &playTape{tape: t}
	}
	return nil
}

// folded is what the ranks have recorded.
func folded(all []*actor) string {
	ranks := make([]string, len(all))
	for r, a := range all {
		ranks[r] = strings.Join(a.tape.lines, ";")
	}
	return strings.Join(ranks, "|")
}

// explored runs the play and calls final at each of its ends.
func (p play) explored(t *testing.T, final func(run string, report func(string, ...any))) explore.Result {
	m, err := defaultMode(len(p.scripts))
	if err == nil {
		m, err = m.with(p.ofObject(), len(p.scripts), newVector)
	}
	if err != nil {
		t.Fatal(err)
	}
	r := explore.Check(explore.Options{Preemptions: p.own(preemptions)}, func(x *explore.Exec) {
		all := p.cast(x, m)
		x.Final(func(report func(string, ...any)) { final(folded(all), report) })
	})
	if r.Failure != "" {
		t.Fatalf("%s: %v", p.options, r)
	}
	return r
}

func TestExploreReplay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		options string
		scripts []string
	}{
		{"async", "consistency=async", []string{"tt", "pp"}},
		{"async, overwritten while it is folded", "consistency=async", []string{"t", "ppp"}},
		{"async, both ways", "consistency=async preemptions=1", []string{"ss", "ss"}},
		{"async, ranks that pass on", "consistency=async preemptions=1", []string{"t", "pp", "tp"}},
		{"async, a barrier", "consistency=async preemptions=1", []string{"sbs", "pbt"}},
		{"async, closed", "consistency=async preemptions=1", []string{"tc", "pp"}},
		{"ssp", "consistency=ssp:1 preemptions=1", []string{"s", "sss"}},
		{"changes", "consistency=async fold=sum-changes preemptions=1", []string{"S", "PPG"}},
		{"sparse", "consistency=async sparse=model preemptions=1", []string{"tt", "pp"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			runs := map[string]bool{}
			sum := play{c.options + " recorded=", c.scripts, 0, false, nil}.explored(t, func(run string, _ func(string, ...any)) { runs[run] = true })
			for _, run := range slices.Sorted(maps.Keys(runs)) {
				r := play{c.options + " recorded=" + run, c.scripts, 0, false, nil}.explored(t, func(again string, report func(string, ...any)) {
					if again != run {
						report("a replay of %s has folded %s", run, again)
					}
				})
				sum.States, sum.Turns, sum.Executions = sum.States+r.States, sum.Turns+r.Turns, sum.Executions+r.Executions
			}
			t.Logf("%d recordings, %v", len(runs), sum)
		})
	}
}

package processes

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// tally counts what has been tried.
type tally map[string]int

func (t tally) add(what string, n int) { t[what] += n }

// slowest is not a count: the largest of all.
const slowest = "ms until a death was noticed, at most"

func (t tally) addAll(other tally) {
	for what, n := range other {
		if what == slowest {
			t[what] = max(t[what], n)
		} else {
			t[what] += n
		}
	}
}

// String is a line for what happened to ranks, then one for what they exchanged,
// by consistency. Such keys are two words.
func (t tally) String() string {
	var events, modes []string
	exchanged := map[string][]string{}
	for _, what := range slices.Sorted(maps.Keys(t)) {
		verb, mode, ok := strings.Cut(what, " ")
		if !ok || !slices.Contains([]string{"scatters", "gathers", "folded"}, verb) || !slices.Contains(modeNames, mode) {
			events = append(events, fmt.Sprintf("%d %s", t[what], what))
			continue
		}
		exchanged[mode] = append(exchanged[mode], fmt.Sprintf("%d %s", t[what], verb))
	}
	for _, mode := range slices.Sorted(maps.Keys(exchanged)) {
		modes = append(modes, mode+": "+strings.Join(exchanged[mode], ", "))
	}
	return strings.Join(events, ", ") + "\n    " + strings.Join(modes, "; ")
}

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

func (t tally) addAll(other tally) {
	for what, n := range other {
		t[what] += n
	}
}

func (t tally) String() string {
	parts := make([]string, 0, len(t))
	for _, what := range slices.Sorted(maps.Keys(t)) {
		parts = append(parts, fmt.Sprintf("%d %s", t[what], what))
	}
	return strings.Join(parts, ", ")
}

package nearest

import (
	"slices"
	"strings"
	"testing"
)

func TestWord(t *testing.T) {
	known := []string{"all", "ring", "chord", "halton", "halton-paper", "hypercube", "random", "-h"}
	for word, want := range map[string]string{
		"halten": "halton", "haltonpaper": "halton-paper", "rnig": "ring", "al": "all", "cord": "chord",
		"rand":   "random", // two changes from ring, too
		"zzzzzz": "", "": "", "xy": "", "-m": "",
		"ALL": "all", "halton_paper": "halton-paper", " Ring ": "ring", strings.Repeat("ring", 11): "",
		"fully_connected": "all", "ring-allreduce": "all", "cube": "hypercube",
		"random=2": "random:2", "rand-2": "random:2", "Random(2)": "random:2", "zzzzzz=2": "",
	} {
		if got := Word(word, known); got != want {
			t.Errorf("Word(%q) = %q, want %q", word, got, want)
		}
	}
}

// Words of other systems are looked up before the spelling is: asp is nearer to bsp than to async.
func TestWordOfOtherSystems(t *testing.T) {
	for _, c := range []struct{ known, words string }{
		{"bsp async ssp notify-ack", "asp:async sync:bsp synchronous:bsp hogwild:async stale:ssp SSP:ssp bounded_staleness:ssp"},
		{"mean mean-received sum min max replace", "avg:mean average:mean Average:mean AVG:mean ReduceOp.AVG:mean Sum:sum " +
			"SUM:sum MPI.SUM:sum RedOpType.MAX:max maximum:max minimum:min MIN:min add:sum overwrite:replace meen:mean maen:mean"},
		{"graph consistency fold", "topology:graph staleness:consistency op:fold"},
		{"op", "average:op"},
	} {
		for pair := range strings.FieldsSeq(c.words) {
			word, want, _ := strings.Cut(pair, ":")
			if got := Word(word, strings.Fields(c.known)); got != want {
				t.Errorf("Word(%q) = %q, want %q", word, got, want)
			}
		}
	}
	for meant, words := range elsewhere {
		for i, word := range words {
			if word != strings.ToLower(word) || strings.Contains(word, "_") || slices.Contains(words[:i], word) {
				t.Errorf("%s: %q can never be found", meant, word)
			}
		}
	}
}

// distance is checked against its recursive definition.
func TestDistance(t *testing.T) {
	var slow func(a, b string) int
	slow = func(a, b string) int {
		if a == "" || b == "" {
			return len(a) + len(b)
		}
		change := slow(a[1:], b[1:])
		if a[0] != b[0] {
			change++
		}
		least := min(change, 1+slow(a[1:], b), 1+slow(a, b[1:]))
		if len(a) > 1 && len(b) > 1 && a[0] == b[1] && a[1] == b[0] {
			least = min(least, 1+slow(a[2:], b[2:]))
		}
		return least
	}
	words := []string{"", "a", "all", "ring", "rnig", "star", "tsar", "chord", "lists"}
	for _, a := range words {
		for _, b := range words {
			if got, want := distance(a, b), slow(a, b); got != want {
				t.Errorf("distance(%q, %q) = %d, want %d", a, b, got, want)
			}
		}
	}
}

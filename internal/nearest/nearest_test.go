package nearest

import "testing"

func TestWord(t *testing.T) {
	known := []string{"all", "ring", "chord", "halton", "halton-paper", "hypercube", "random"}
	for word, want := range map[string]string{
		"halten": "halton", "haltonpaper": "halton-paper", "rnig": "ring", "al": "all", "cord": "chord",
		"rand":   "random", // two changes from ring, too
		"zzzzzz": "", "": "",
	} {
		if got := Word(word, known); got != want {
			t.Errorf("Word(%q) = %q, want %q", word, got, want)
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
		return min(change, 1+slow(a[1:], b), 1+slow(a, b[1:]))
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

package nearest

import "testing"

func TestWord(t *testing.T) {
	known := []string{"all", "ring", "chord", "halton", "halton-paper", "hypercube"}
	for word, want := range map[string]string{
		"halten": "halton", "haltonpaper": "halton-paper", "rnig": "ring", "al": "all", "cord": "chord",
		"zzzzzz": "", "": "",
	} {
		if got := Word(word, known); got != want {
			t.Errorf("Word(%q) = %q, want %q", word, got, want)
		}
	}
}

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"abc", "", 3}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"flaw", "lawn", 2}, {"ab", "ba", 2}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

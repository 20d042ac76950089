package say

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestRanks(t *testing.T) {
	hundred, even := make([]int, 100), make([]int, 100)
	for i := range hundred {
		hundred[i], even[i] = i, 2*i
	}
	for _, c := range []struct {
		ranks []int
		want  string
	}{
		{[]int{2}, "rank 2"},
		{[]int{2, 0}, "ranks 0, 2"},
		{[]int{0, 1, 2}, "ranks 0, 1, 2"},
		{[]int{0, 2, 3, 4, 5, 9}, "ranks 0, 2-5, 9"},
		{hundred, "ranks 0-99"},
		{even, "ranks 0, 2, 4, 6, 8, 10, 12, 14 and 92 more"},
	} {
		if got := Ranks(c.ranks); got != c.want {
			t.Errorf("Ranks(%v) = %q; expected %q", c.ranks, got, c.want)
		}
	}
}

func TestNoLineIsTooLong(t *testing.T) {
	word := strings.Repeat("ä", 60)
	parts := word + "; " + word + ", " + word + ": " + word + " " + word
	e := Errorf(nil, "%s", parts).At("%s", parts).Try("%s", strings.Repeat("so ", 99))
	lines := strings.Split(e.Error(), "\n")
	for _, line := range lines {
		if n := utf8.RuneCountInString(line); n > Width {
			t.Errorf("%d letters: %s", n, line)
		}
	}
	if joined := strings.Join(strings.Fields(e.Error()), " "); joined != strings.Join(strings.Fields(parts+" "+parts+" "+strings.Repeat("so ", 99)), " ") {
		t.Errorf("words got lost: %s", joined)
	}
	if again := Lines(e.Error()); again != e.Error() {
		t.Errorf("broken twice: %s", again)
	}
	if long := strings.Repeat("x", 300); Lines("a "+long) != "a "+long && !strings.Contains(Lines("a "+long), long) {
		t.Error("a word was broken, which could be a path")
	}
}

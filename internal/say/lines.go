package say

import (
	"fmt"
	"slices"
	"strings"
)

// Width is how many letters a line of an error has at most.
const Width = 120

// Lines puts those that are not empty below each other. One that is longer than Width
// goes on in the next line, after two blanks: what a user has named can be long.
func Lines(lines ...string) string {
	var all []string
	for _, line := range strings.Split(strings.Join(lines, "\n"), "\n") {
		if line != "" {
			all = append(all, fitting(line)...)
		}
	}
	return strings.Join(all, "\n")
}

// fitting is line, broken where a part of the sentence ends, else between two words.
func fitting(line string) (lines []string) {
	const indent = "  "
	for rest := []rune(line); ; {
		if len(rest) <= Width {
			return append(lines, string(rest))
		}
		at := -1
		for _, end := range []string{"; ", ": ", ", ", " "} {
			if at = lastIndex(rest[:Width], end); at > Width/2 {
				at += len(strings.TrimRight(end, " "))
				break
			}
		}
		if at <= len(indent) {
			return append(lines, string(rest)) // one word
		}
		lines = append(lines, string(rest[:at]))
		rest = append([]rune(indent), []rune(strings.TrimLeft(string(rest[at:]), " "))...)
	}
}

func lastIndex(text []rune, end string) int {
	before := strings.LastIndex(string(text), end)
	if before < 0 {
		return before
	}
	return len([]rune(string(text)[:before]))
}

// Brief is text with at most so many letters.
func Brief(text string, most int) string {
	if letters := []rune(text); len(letters) > most {
		return string(letters[:most-1]) + "…"
	}
	return text
}

// Ranks names ranks in a sentence: "rank 2", "ranks 0, 2, 5-99"; of very many the first.
func Ranks(ranks []int) string {
	const most = 8 // pieces
	ranks = slices.Sorted(slices.Values(ranks))
	var pieces []string
	for i := 0; i < len(ranks); {
		if len(pieces) == most {
			return fmt.Sprintf("ranks %s and %d more", strings.Join(pieces, ", "), len(ranks)-i)
		}
		n := 1
		for i+n < len(ranks) && ranks[i+n] == ranks[i]+n {
			n++
		}
		if n < 4 {
			n = 1
			pieces = append(pieces, fmt.Sprint(ranks[i]))
		} else {
			pieces = append(pieces, fmt.Sprintf("%d-%d", ranks[i], ranks[i+n-1]))
		}
		i += n
	}
	if len(ranks) == 1 {
		return "rank " + pieces[0]
	}
	return "ranks " + strings.Join(pieces, ", ")
}

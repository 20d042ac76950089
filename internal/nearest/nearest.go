// Package nearest finds the word that was probably meant, for error messages.
package nearest

import (
	"slices"
	"strings"
)

const longest = 40 // bytes; nothing is near to a longer word, and the work is bounded

// Word is the entry of known that was probably meant by word, or "" if none is close enough to be
// worth suggesting. It is the word itself in other letters, else what other systems call so, else the
// one with the smallest edit distance; among equals the first of those that begin most like it. The
// number of a word like ssp=2 is kept: ssp:2.
func Word(word string, known []string) string {
	if len(word) > longest {
		return ""
	}
	plain := strings.ReplaceAll(strings.ToLower(strings.TrimSpace(word)), "_", "-")
	plain = strings.TrimLeft(plain[strings.LastIndex(plain, ".")+1:], "-") // ReduceOp.SUM
	if word, number, ok := numbered(plain); ok {
		if name := Word(word, known); name != "" {
			return name + ":" + number
		}
		return ""
	}
	for _, same := range []func(k string) bool{
		func(k string) bool { return strings.EqualFold(k, plain) },
		func(k string) bool { return slices.Contains(elsewhere[k], plain) },
	} {
		if i := slices.IndexFunc(known, same); i >= 0 {
			return known[i]
		}
	}
	return spelled(strings.ToLower(word), known)
}

// numbered takes a word and its number apart, however the two are joined: ssp:2, ssp(2). (Package regexp
// would make the wheel 2 % larger.)
func numbered(joined string) (word, number string, ok bool) {
	const digits = "0123456789"
	joined = strings.TrimSuffix(joined, ")")
	front := strings.TrimRight(joined, digits)
	word, number = strings.TrimRight(front, "-:=( "), joined[len(front):]
	return word, number, number != "" && word != "" && word != front && !strings.ContainsAny(word[len(word)-1:], digits)
}

// spelled is the entry of known with the smallest edit distance.
func spelled(word string, known []string) string {
	best, limit := "", len(strings.TrimLeft(word, "-"))/2 // an option has its dashes in common with all others
	for _, k := range known {
		d := distance(word, k)
		if d < limit || d == limit && (best == "" || alike(word, k) > alike(word, best)) {
			best, limit = k, d
		}
	}
	return best
}

// alike counts the bytes with which two words begin in common.
func alike(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// distance is Levenshtein's, with neighbours that have changed places: insertions, deletions,
// replacements and swaps.
func distance(a, b string) int {
	row, last, before := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		before, last, row = last, row, before
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(b)]
}

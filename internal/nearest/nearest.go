// Package nearest finds the word that was probably meant, for error messages.
package nearest

// Word is the entry of known with the smallest edit distance to word, among
// equals the first of those that begin most like it, or "" if none is close
// enough to be worth suggesting.
func Word(word string, known []string) string {
	best, limit := "", len(word)/2+1
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

// distance is Levenshtein's: insertions, deletions and replacements.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range a {
		diagonal := row[0]
		row[0] = i + 1
		for j := range b {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}

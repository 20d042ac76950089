// Package say has the form of the errors that a person reads: three short lines, of
// which each may be missing. What happened; where, and which ranks; what to do. The
// parts stay apart up to the face that shows them.
package say

import "strings"

// Error is such an error.
type Error struct {
	Kind  error  // for errors.Is
	Call  string // that was being made, as a program writes it; "" where there was none
	What  string // happened
	Where string // and which ranks
	Do    string // about it
	Topic string // of `malt explain`, for more
}

func (e *Error) Error() string { return Lines(e.What, e.Where, e.Do) }

func (e *Error) Unwrap() error { return e.Kind }

// Lines puts those that are not empty below each other.
func Lines(lines ...string) string {
	var b strings.Builder
	for _, line := range lines {
		if line != "" && b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(line)
	}
	return b.String()
}

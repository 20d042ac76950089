// Package say forms the errors that a person reads. They have three short lines, each of
// which may be missing: what happened; where, and which ranks; what to do. The lines stay
// separate until Python or C shows them:
//
//	say.Errorf(ErrState, "%s: the gather comes first", call).In(call).Try("Call gather() first.")
package say

import (
	"errors"
	"fmt"
	"strings"

	"malt/internal/nearest"
)

// Error is such an error.
type Error struct {
	Kind  error  // for errors.Is
	Call  string // that was being made, as a program writes it; "" where there was none
	What  string // happened
	Where string // and which ranks
	Do    string // about it
	Topic string // of `malt explain`, for more
}

// Errorf is an error of that kind, with what happened. The methods add the rest.
func Errorf(kind error, format string, args ...any) *Error {
	return &Error{Kind: kind, What: fmt.Sprintf(format, args...)}
}

// Unknown is the error for a word that is none of those known, with the one that was
// probably meant. what is that the word stands for.
func Unknown(kind error, what, word string, known ...string) *Error {
	quoted := []rune(fmt.Sprintf("%.40q", word))
	if len(quoted) > 60 { // letters that are not printable take four each
		quoted = append(quoted[:58], '…', '"')
	}
	e := Errorf(kind, "%s %s is not known", what, string(quoted)).At("it is one of %s", strings.Join(known, ", "))
	if near := nearest.Word(word, known); near != "" {
		e.Do = fmt.Sprintf("Did you mean %q?", near)
	}
	return e
}

// In names the call.
func (e *Error) In(call string) *Error { e.Call = call; return e }

// At says where it happened, and with which ranks.
func (e *Error) At(format string, args ...any) *Error {
	e.Where = fmt.Sprintf(format, args...)
	return e
}

// Try says what to do about it.
func (e *Error) Try(format string, args ...any) *Error {
	e.Do = fmt.Sprintf(format, args...)
	return e
}

// More names the topic of the guide.
func (e *Error) More(topic string) *Error { e.Topic = topic; return e }

// As is err as an error of that kind; nil for nil.
func As(kind, err error) error {
	if err == nil {
		return nil
	}
	e := Of(err)
	e.Kind = kind
	return &e
}

// Of is what err says: of an error of another form its sentence.
func Of(err error) Error {
	var said *Error
	if errors.As(err, &said) {
		return *said
	}
	return Error{Kind: err, What: err.Error()}
}

func (e *Error) Error() string { return Lines(e.What, e.Where, e.Do) }

func (e *Error) Unwrap() error { return e.Kind }

// Pack is the three lines as one text for another rank, and Unpack reads it.
func (e *Error) Pack() string { return strings.Join([]string{e.What, e.Where, e.Do}, "\n") }

// Unpack is the error of that kind which text is the Pack of.
func Unpack(kind error, text string) *Error {
	lines := append(strings.SplitN(text, "\n", 3), "", "")
	return &Error{Kind: kind, What: lines[0], Where: lines[1], Do: lines[2]}
}

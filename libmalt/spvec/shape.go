package spvec

import (
	"errors"
	"fmt"
	"math"

	"malt/internal/say"
)

// Shape is a vector of Rows rows of Width elements of Elem bytes: 4 (float32)
// or 8 (float64).
type Shape struct{ Rows, Width, Elem int }

// Check tells whether a vector of shape s can be sparse.
func (s Shape) Check() error {
	switch {
	case s.Elem != 4 && s.Elem != 8:
		return say.Errorf(nil, "elements of %d bytes: expected 4 or 8", s.Elem)
	case s.Width < 1:
		return say.Errorf(nil, "rows of %d elements: expected at least 1", s.Width)
	case s.Rows < 0 || s.Rows >= math.MaxUint32:
		return say.Errorf(nil, "a sparse vector of %d rows: expected fewer than %d", s.Rows, uint32(math.MaxUint32)).Try("Make several vectors, or a dense one.")
	}
	return nil
}

// RowBytes is the length of one row, Bytes that of all.
func (s Shape) RowBytes() int { return s.Width * s.Elem }

// Bytes is the length of all rows.
func (s Shape) Bytes() int { return s.Rows * s.RowBytes() }

// MaxBytes is the length of the longest message.
func (s Shape) MaxBytes() int { return countBytes + roundUp(4*s.Rows) + s.Bytes() }

const countBytes = 8

// roundUp makes values begin at a multiple of the largest element.
func roundUp(n int) int { return (n + 7) &^ 7 }

// Kind says how a message is laid out.
type Kind uint16

const (
	Dense     Kind = iota // all rows, and nothing else
	Rows                  // some rows, all of age 0
	Aged                  // some rows of different ages
	AgedDense             // the ages of all rows, and all rows
)

func (k Kind) String() string {
	if names := [...]string{"dense", "rows", "aged rows", "aged dense"}; int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("Kind(%d)", uint16(k))
}

// ErrCorrupt is the kind of all errors of Decode.
var ErrCorrupt = errors.New("corrupt message")

func corrupt(format string, args ...any) error {
	return say.Errorf(ErrCorrupt, format, args...)
}

// DenseFrom is the number of rows from which the whole vector is cheaper: a row
// is found by its index where a whole vector streams by.
func (s Shape) DenseFrom() int {
	return (s.Bytes() + s.RowBytes() + lookupBytes - 1) / (s.RowBytes() + lookupBytes)
}

// lookupBytes is how many bytes of a whole vector go by while one row is found,
// sent and folded, beside looking through the whole gradient. In shared memory
// that is some 600, on a network some 50; between the two, a gradient of single elements is sent whole from 1.5 % on, one
// of rows of 64 bytes from 20 % on.
const lookupBytes = 256

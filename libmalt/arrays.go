package libmalt

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"malt/internal/say"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
)

// DType is an element type.
type DType = reduce.DType

const (
	Float32 = reduce.Float32
	Float64 = reduce.Float64
)

// Array is one array of a vector.
type Array struct {
	DType DType
	Count int
	Row   int    // elements of a row of a sparse vector, or of one with ids; 0: 1
	Init  []byte // first values; nil: zeros
	Shape []int  // lengths of its axes; nil: one axis
	// IDs are those of its rows, of which each rank has its own; nil: all ranks have the same
	// rows. Wants are those of the rows that a sync brings; nil: the array's own.
	IDs, Wants []uint64
}

// String is "float32[500x1000]".
func (a Array) String() string {
	shape := a.Shape
	if shape == nil {
		shape = []int{a.Count}
	}
	text := append([]byte(a.DType.String()), '[')
	for i, n := range shape {
		if i > 0 {
			text = append(text, 'x')
		}
		text = strconv.AppendInt(text, int64(n), 10)
	}
	return string(append(text, ']'))
}

// checkShape refuses a shape that has not as many elements as the array, which is
// called what.
func (a Array) checkShape(what string) error {
	n := 1
	for _, l := range a.Shape {
		if l < 0 || l > 0 && n > math.MaxInt/l {
			n = -1
			break
		}
		n *= l
	}
	if a.Shape != nil && n != a.Count {
		return say.Errorf(ErrInvalid, "%s has %d elements, but the shape %v", what, a.Count, a.Shape).Try("The product of the lengths must be the number of elements.")
	}
	return nil
}

// wrongType is the error for what has elements of that type.
func wrongType(what string, dt DType) error {
	return say.Errorf(ErrInvalid, "%s has element type %d: expected float32 (%d) or float64 (%d)", what, dt, Float32, Float64)
}

// describe is "float32[3] float64[2x5]".
func describe(arrays []Array) string {
	parts := make([]string, len(arrays))
	for i, a := range arrays {
		parts[i] = a.String()
	}
	return strings.Join(parts, " ")
}

// describeRuns is describe of what lies one behind the other.
func describeRuns(runs []reduce.Run) string {
	arrays := make([]Array, len(runs))
	for i, r := range runs {
		arrays[i] = Array{DType: r.Type, Count: r.Bytes / r.Type.Size()}
	}
	return describe(arrays)
}

// shapeOf is how the one array of a sparse vector lies in rows.
func shapeOf(arrays []Array) (spvec.Shape, error) {
	if len(arrays) != 1 {
		return spvec.Shape{}, say.Errorf(ErrInvalid, "a sparse vector of %d arrays: expected one", len(arrays)).Try("Make one vector for each array. Its rows are the first axis.")
	}
	a := arrays[0]
	width := max(a.Row, 1)
	if a.Row < 0 || a.Count%width != 0 {
		return spvec.Shape{}, say.Errorf(ErrInvalid, "%d elements in rows of %d: expected a number that divides them", a.Count, a.Row)
	}
	s := spvec.Shape{Rows: a.Count / width, Width: width, Elem: a.DType.Size()}
	return s, say.As(ErrInvalid, s.Check())
}

// keyedShape is how a row lies in the one array of a vector with ids.
func keyedShape(arrays []Array) (row spvec.Shape, err error) {
	if len(arrays) != 1 {
		return row, say.Errorf(ErrInvalid, "ids= of a vector of %d arrays: expected one", len(arrays)).Try("Make one vector for each array. Its rows are the first axis.")
	}
	a := arrays[0]
	if a.IDs == nil {
		return row, say.Errorf(ErrInvalid, "wants= without ids=").Try("Name the ids of the rows, too: of none if this rank only wants some.")
	}
	row = spvec.Shape{Rows: len(a.IDs), Width: max(a.Row, 1), Elem: a.DType.Size()}
	if row.Bytes() != a.Count*row.Elem {
		return row, say.Errorf(ErrInvalid, "%d ids for %d elements in rows of %d: expected one id for each row", len(a.IDs), a.Count, row.Width)
	}
	if err := row.Check(); err != nil {
		return row, say.As(ErrInvalid, err)
	}
	return row, say.As(ErrInvalid, spvec.Shape{Rows: len(a.Wants), Width: row.Width, Elem: row.Elem}.Check())
}

// describeKeyed is what all ranks must have alike of such an array.
func describeKeyed(a Array, row spvec.Shape) string {
	return fmt.Sprintf("rows of %d %s with ids", row.Width, a.DType)
}

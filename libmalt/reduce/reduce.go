package reduce

import (
	"fmt"
	"slices"

	"malt/internal/say"
)

// DType is the type of the elements. The values are those of malt.h.
type DType uint8

const (
	Float32 DType = 1
	Float64 DType = 2
)

var dtypeNames = []string{Float32: "float32", Float64: "float64"}

// Size is the number of bytes of one element.
func (d DType) Size() int {
	switch d {
	case Float32:
		return 4
	case Float64:
		return 8
	}
	return 0
}

func (d DType) String() string { return nameOf(dtypeNames, int(d), "DType") }

// Op says how operands are combined.
type Op uint8

const (
	Mean         Op = iota + 1 // the average of all operands
	MeanReceived               // the same; the caller leaves its own value out of the operands
	Sum
	Min
	Max
	Replace     // the last operand
	SumChanges  // of vectors alone: see package codec
	MeanChanges // the same, each divided by the number of ranks
)

var opNames = []string{
	Mean: "mean", MeanReceived: "mean-received", Sum: "sum", Min: "min", Max: "max", Replace: "replace",
	SumChanges: "sum-changes", MeanChanges: "mean-changes",
}

func (o Op) String() string { return nameOf(opNames, int(o), "Op") }

// Weighted tells whether the weights of the operands matter.
func (o Op) Weighted() bool { return o == Mean || o == MeanReceived }

// Changes tells whether o adds up what the ranks have changed. There is no Fold of these.
func (o Op) Changes() bool { return o >= SumChanges }

// Names returns the names of all operations.
func Names() []string { return slices.Clone(opNames[1:]) }

// ParseOp is the inverse of String.
func ParseOp(s string) (Op, error) {
	if i := slices.Index(opNames[1:], s); i >= 0 {
		return Op(i + 1), nil
	}
	return 0, say.Unknown(nil, "fold", s, opNames[1:]...)
}

// nameOf serves both types: index 0 of names is the invalid zero value.
func nameOf(names []string, i int, kind string) string {
	if i < 1 || i >= len(names) {
		return fmt.Sprintf("%s(%d)", kind, i)
	}
	return names[i]
}

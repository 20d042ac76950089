package spvec

import "malt/libmalt/reduce"

// Op says how the values at one row are combined: as whole vectors are.
type Op = reduce.Op

const (
	Mean         = reduce.Mean
	MeanReceived = reduce.MeanReceived
	Sum          = reduce.Sum
	Min          = reduce.Min
	Max          = reduce.Max
	Replace      = reduce.Replace // the last update's
)

// Absent says what a row is that an update does not mention.
type Absent uint8

const (
	Keep Absent = iota + 1 // no operand: a row that no update mentions keeps its value
	Zero                   // zero: the fold is that of the updates as whole vectors
)

// Folder folds updates into vectors; it keeps its memory, that of a block of
// rows, from fold to fold. The zero value is ready.
type Folder struct {
	next    []int    // by update: how many of its rows are folded
	touched []uint32 // rows of the block that are mentioned, in the order of their finding
	count   []int32  // by row of the block: its operands, without the own; all 0 between blocks
	weight  []float64
	srcs    [][]byte // of a long row
	ranks   []int    // of these
	found   []uint32 // of rest
	masks   []uint64 // of foldHalves
	acc32   []float32
	acc64   []float64
}

// job is one fold.
type job struct {
	op      Op
	absent  Absent
	shape   Shape
	us      []Update
	raw     []byte  // own
	before  int     // updates that come before the own value
	ownIn   bool    // that takes part
	own     float64 // its weight
	weigh   bool    // the weights differ
	divisor float64 // of a row that all mention, Zero alone
}

// Fold combines the values of own, a whole vector, with updates, row by row.
// Operands are combined in the order of updates, own's behind the first before
// of them, so that ranks that fold the same set get the same bits. weight is
// own's in a mean. Additions are those of the element type; where weights
// differ, of float64: weights of all updates or, where rows are long, of those
// that mention the row. An operand of weight 0 takes no part in a mean. own is
// aligned to its elements.
//
// It returns the rank of the update that has brought NaN or infinity into a long row, or reduce.None:
// other rows would have to be looked at once more.
func (f *Folder) Fold(op Op, absent Absent, s Shape, own []byte, before int, weight float64, updates []Update) (from int) {
	from = reduce.None
	j := job{op: op, absent: absent, shape: s, us: updates, raw: own, before: before, ownIn: op != MeanReceived && op != Replace, own: weight}
	if op == Mean || op == MeanReceived {
		j.weights()
		if len(j.us) == 0 && !j.ownIn || absent == Zero && j.divisor == 0 {
			return from
		}
	}
	switch {
	case s.Rows == 0 || len(j.us) == 0:
	case op == Replace:
		j.replace(own)
	case j.long():
		from = foldLong(f, &j)
	case j.halves() && s.Elem == 8:
		foldHalves(f, &j, view[float64](own))
	case j.halves():
		foldHalves(f, &j, view[float32](own))
	case j.one() && s.Elem == 8:
		foldOne(&j, view[float64](own))
	case j.one():
		foldOne(&j, view[float32](own))
	case s.Elem == 8:
		f.acc64 = fold(f, &j, f.acc64, view[float64](own))
	case j.weigh:
		f.acc64 = fold(f, &j, f.acc64, view[float32](own))
	default:
		f.acc32 = fold(f, &j, f.acc32, view[float32](own))
	}
	return from
}

// weights leaves out what weighs nothing and finds out whether the rest weighs
// the same.
func (j *job) weights() {
	var kept []Update
	first, same := 0.0, true
	add := func(w float64) {
		if first == 0 {
			first = w
		}
		same = same && w == first
		j.divisor += w
	}
	j.ownIn = j.ownIn && j.own > 0
	if j.ownIn {
		add(j.own)
	}
	none := 0
	for i := range j.us {
		if j.us[i].Weight > 0 {
			add(j.us[i].Weight)
			continue
		}
		none++
	}
	if none > 0 {
		before := 0
		for i, u := range j.us {
			if u.Weight > 0 {
				if i < j.before {
					before++
				}
				kept = append(kept, u)
			}
		}
		j.us, j.before = kept, before
	}
	if j.weigh = !same; same {
		j.divisor = float64(len(j.us))
		if j.ownIn {
			j.divisor++
		}
	}
}

// replace lets the last update that mentions a row overwrite it.
func (j *job) replace(own []byte) {
	if j.absent == Zero {
		clear(own[:j.shape.Bytes()])
		j.us = j.us[len(j.us)-1:]
	}
	for i := range j.us {
		j.us[i].Expand(own, j.shape)
	}
}

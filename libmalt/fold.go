package libmalt

import (
	"strings"

	"malt/libmalt/reduce"
)

// run is consecutive elements of one type, at off in an object.
type run struct {
	dtype      reduce.DType
	off, bytes int
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
func describeRuns(runs []run) string {
	arrays := make([]Array, len(runs))
	for i, r := range runs {
		arrays[i] = Array{DType: r.dtype, Count: r.bytes / r.dtype.Size()}
	}
	return describe(arrays)
}

// fewArrays is for how many a fold of several runs allocates nothing.
const fewArrays = 32

// foldRuns folds the n = len(dst) bytes that lie at off of an object made of
// runs. srcs have n bytes each, or, where they are the whole object, dst and
// srcs begin at off 0. sums is 0, or in a mean how many operands there are: then
// srcs are sums of them.
func foldRuns(op reduce.Op, runs []run, off int, dst []byte, srcs [][]byte, weights []float64, sums int) {
	if len(runs) == 1 {
		foldRun(op, runs[0].dtype, dst, srcs, weights, sums)
		return
	}
	var few [fewArrays][]byte
	cut := append(few[:0], srcs...)
	for _, r := range runs {
		lo, hi := max(r.off, off), min(r.off+r.bytes, off+len(dst))
		if lo < hi {
			for i, s := range srcs {
				cut[i] = s[lo-off : hi-off]
			}
			foldRun(op, r.dtype, dst[lo-off:hi-off], cut, weights, sums)
		}
	}
}

// foldTogether folds arrays, n bytes at off of objects made of runs, into each of
// them.
func foldTogether(op reduce.Op, runs []run, off int, arrays [][]byte, weights []float64) {
	if len(runs) == 1 {
		reduce.FoldInto(op, runs[0].dtype, arrays, arrays, weights)
		return
	}
	var few [fewArrays][]byte
	cut := append(few[:0], arrays...)
	for _, r := range runs {
		lo, hi := max(r.off, off), min(r.off+r.bytes, off+len(arrays[0]))
		if lo < hi {
			for i, a := range arrays {
				cut[i] = a[lo-off : hi-off]
			}
			reduce.FoldInto(op, r.dtype, cut, cut, weights)
		}
	}
}

func foldRun(op reduce.Op, dt reduce.DType, dst []byte, srcs [][]byte, weights []float64, sums int) {
	if sums > 0 {
		reduce.FoldSums(dt, dst, srcs, sums)
	} else {
		reduce.Fold(op, dt, dst, srcs, weights)
	}
}

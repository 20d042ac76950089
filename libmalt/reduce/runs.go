package reduce

// Run is consecutive elements of one type, at Off in an object.
type Run struct {
	Type       DType
	Off, Bytes int
}

// fewArrays is up to how many arrays a fold of several runs does not allocate.
const fewArrays = 32

// FoldRuns folds the n = len(dst) bytes at off of an object made of runs. srcs have n
// bytes each. sums is 0, or, for a mean of operands of which srcs are sums, the number
// of operands. from is as of Fold.
func FoldRuns(op Op, runs []Run, off int, dst []byte, srcs [][]byte, weights []float64, sums int) (from int) {
	if len(runs) == 1 {
		return foldRun(op, runs[0].Type, dst, srcs, weights, sums)
	}
	from = None
	var few [fewArrays][]byte
	cut := append(few[:0], srcs...)
	for _, r := range runs {
		lo, hi := max(r.Off, off), min(r.Off+r.Bytes, off+len(dst))
		if lo < hi {
			for i, s := range srcs {
				cut[i] = s[lo-off : hi-off]
			}
			from = Earlier(from, foldRun(op, r.Type, dst[lo-off:hi-off], cut, weights, sums))
		}
	}
	return from
}

// FoldTogether folds arrays, each n bytes at off of an object made of runs, into every
// one of them.
func FoldTogether(op Op, runs []Run, off int, arrays [][]byte, weights []float64) (from int) {
	if len(runs) == 1 {
		return FoldInto(op, runs[0].Type, arrays, arrays, weights)
	}
	from = None
	var few [fewArrays][]byte
	cut := append(few[:0], arrays...)
	for _, r := range runs {
		lo, hi := max(r.Off, off), min(r.Off+r.Bytes, off+len(arrays[0]))
		if lo < hi {
			for i, a := range arrays {
				cut[i] = a[lo-off : hi-off]
			}
			from = Earlier(from, FoldInto(op, r.Type, cut, cut, weights))
		}
	}
	return from
}

func foldRun(op Op, dt DType, dst []byte, srcs [][]byte, weights []float64, sums int) (from int) {
	if sums > 0 {
		return FoldSums(dt, dst, srcs, sums)
	}
	return Fold(op, dt, dst, srcs, weights)
}

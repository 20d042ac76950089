package reduce

import "fmt"

// onStack is how many operands a Fold takes without allocating.
const onStack = 64

// goBelow is the number of operand bytes up to which the plain kernel is done
// before a call into C has even arrived.
const goBelow = 512

// Fold combines srcs element by element, in their order, and writes the result
// to dst. It folds the len(dst)/dt.Size() elements that dst holds; every source
// is at least as long. dst may be one of srcs. Any alignment will do.
//
// weights matter to Mean and MeanReceived alone; nil means that all are equal,
// otherwise there is one for each source, finite and not negative.
//
// Without operands (none given, or none with a weight above 0) dst stays as it
// is. A source that is too short, or a number of weights other than that of
// sources, is a defect of the caller and panics before anything is written.
//
// It returns the index of the source that has brought NaN or infinity into the result, None or
// Unknown. The kernels look at results before they store them, so that no pass is added.
func Fold(op Op, dt DType, dst []byte, srcs [][]byte, weights []float64) (from int) {
	one := [1][]byte{dst}
	return foldOn(pathFor(len(srcs)*len(dst)), op, dt, one[:], srcs, weights)
}

// FoldInto is Fold with several outputs of one length, which may be some of srcs.
// One more costs the pass that writes it, and nothing is read again.
func FoldInto(op Op, dt DType, dsts, srcs [][]byte, weights []float64) (from int) {
	if len(dsts) == 0 {
		return None
	}
	return foldOn(pathFor(len(srcs)*len(dsts[0])), op, dt, dsts, srcs, weights)
}

// FoldSums writes to dst the mean of n operands, of which each of srcs is the sum
// of some. The rest is as with Fold.
func FoldSums(dt DType, dst []byte, srcs [][]byte, n int) (from int) {
	one := [1][]byte{dst}
	return foldSumsOn(pathFor(len(srcs)*len(dst)), dt, one[:], srcs, n)
}

func foldSumsOn(p path, dt DType, dsts, srcs [][]byte, n int) (from int) {
	check(Mean, dt, dsts, srcs)
	return combineOn(p, Mean, dt, dsts, srcs, nil, n)
}

// pathFor is the path for so many bytes of operands.
func pathFor(bytes int) path {
	if bytes <= goBelow {
		return pathGo
	}
	return current()
}

// foldOn is Fold on one path. Its calls are direct, so that the compiler sees
// that neither the lists nor the two rooms outlive them.
func foldOn(p path, op Op, dt DType, dsts, srcs [][]byte, weights []float64) (from int) {
	check(op, dt, dsts, srcs)
	if op == Replace && len(srcs) > 0 {
		srcs = srcs[len(srcs)-1:]
	}
	if !op.Weighted() || weights == nil {
		return combineOn(p, op, dt, dsts, srcs, nil, len(srcs))
	}
	if len(weights) != len(srcs) {
		panic(fmt.Sprintf("reduce: %d weights for %d sources", len(weights), len(srcs)))
	}
	var srcRoom [onStack][]byte
	var weightRoom [onStack]float64
	some, theirs := weighing(srcs, weights, srcRoom[:0], weightRoom[:0])
	from = combineOn(p, op, dt, dsts, some, theirs, len(some))
	for i := 0; i <= from; i++ {
		if weights[i] == 0 {
			from++ // it is not among some
		}
	}
	return from
}

// check panics where the caller's lists do not fit.
func check(op Op, dt DType, dsts, srcs [][]byte) {
	if dt.Size() == 0 || op < Mean || op > Replace {
		panic(fmt.Sprintf("reduce: no fold %v of %v", op, dt))
	}
	n := len(dsts[0])
	for i, d := range dsts {
		if len(d) != n {
			panic(fmt.Sprintf("reduce: output %d has %d bytes, output 0 %d", i, len(d), n))
		}
	}
	for i, s := range srcs {
		if len(s) < n-n%dt.Size() {
			panic(fmt.Sprintf("reduce: source %d has %d bytes, the output %d", i, len(s), n))
		}
	}
}

// combineOn folds what has been checked. A mean without weights is divided by n.
func combineOn(p path, op Op, dt DType, dsts, srcs [][]byte, weights []float64, n int) (from int) {
	bytes := len(dsts[0]) - len(dsts[0])%dt.Size()
	switch {
	case len(srcs) == 0 || bytes == 0:
		return None
	case len(srcs) == 1 && n == 1:
		for _, dst := range dsts {
			Copy(dst[:bytes], srcs[0])
		}
		return None
	}
	observed(dsts, srcs, bytes)
	done := kernel(p, true, op, dt, dsts, srcs, weights, n, 0, bytes)
	if done == bytes {
		return None
	}
	from = culprit(dt, srcs, done, min(done+tile, bytes))
	kernel(p, false, op, dt, dsts, srcs, weights, n, done, bytes)
	return from
}

// kernel folds the bytes from at on and returns up to where: to the end, or with guard to a
// place less than a tile before the first result that is NaN or infinite.
func kernel(p path, guard bool, op Op, dt DType, dsts, srcs [][]byte, weights []float64, n, at, end int) int {
	switch {
	case p != pathGo:
		return at + foldC(p, guard, op, dt, dsts, srcs, weights, n, at, end-at)
	case dt == Float32:
		return foldGo[float32](guard, op, dsts, srcs, weights, n, at, end)
	}
	return foldGo[float64](guard, op, dsts, srcs, weights, n, at, end)
}

// weighing drops the operands that weigh nothing and, where the others weigh
// the same, the weights. It appends to the two slices it is given.
func weighing(srcs [][]byte, weights []float64, s [][]byte, w []float64) ([][]byte, []float64) {
	equal := true
	for i, x := range weights {
		if x == 0 {
			continue
		}
		s, w = append(s, srcs[i]), append(w, x)
		equal = equal && x == w[0]
	}
	if equal {
		return s, nil
	}
	return s, w
}

// The runtime copies past the caches from 1 MB on. Of what would fit there, both
// that copy and the pass of whoever reads it next take longer for it.
const (
	pastCaches = 4 << 20   // longer copies are the runtime's
	piece      = 512 << 10 // of shorter ones
)

// Copy copies src to dst, as many bytes as the shorter one has, and returns how many
// these are. The two are the same memory, or have none in common.
func Copy(dst, src []byte) int { return CopyPart(dst, src, min(len(dst), len(src))) }

// CopyPart is Copy of one of several parts that are whole bytes together.
func CopyPart(dst, src []byte, whole int) int {
	n := min(len(dst), len(src))
	if observer != nil {
		observed([][]byte{dst}, [][]byte{src}, n)
	}
	if n <= piece || whole > pastCaches {
		return copy(dst, src)
	}
	for at := 0; at < n; at += piece {
		copy(dst[at:min(at+piece, n)], src[at:])
	}
	return n
}

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
func Fold(op Op, dt DType, dst []byte, srcs [][]byte, weights []float64) {
	foldOn(pathFor(len(srcs)*len(dst)), op, dt, dst, srcs, weights)
}

// FoldSums writes to dst the mean of n operands, of which each of srcs is the sum
// of some. The rest is as with Fold.
func FoldSums(dt DType, dst []byte, srcs [][]byte, n int) {
	foldSumsOn(pathFor(len(srcs)*len(dst)), dt, dst, srcs, n)
}

func foldSumsOn(p path, dt DType, dst []byte, srcs [][]byte, n int) {
	dst = checked(Mean, dt, dst, srcs)
	combineOn(p, Mean, dt, dst, srcs, nil, n)
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
func foldOn(p path, op Op, dt DType, dst []byte, srcs [][]byte, weights []float64) {
	dst = checked(op, dt, dst, srcs)
	if op == Replace && len(srcs) > 0 {
		srcs = srcs[len(srcs)-1:]
	}
	var srcRoom [onStack][]byte
	var weightRoom [onStack]float64
	if !op.Weighted() {
		weights = nil
	} else if weights != nil {
		if len(weights) != len(srcs) {
			panic(fmt.Sprintf("reduce: %d weights for %d sources", len(weights), len(srcs)))
		}
		srcs, weights = weighing(srcs, weights, srcRoom[:0], weightRoom[:0])
	}
	combineOn(p, op, dt, dst, srcs, weights, len(srcs))
}

// checked is as much of dst as there are elements.
func checked(op Op, dt DType, dst []byte, srcs [][]byte) []byte {
	if dt.Size() == 0 || op < Mean || op > Replace {
		panic(fmt.Sprintf("reduce: no fold %v of %v", op, dt))
	}
	dst = dst[:len(dst)-len(dst)%dt.Size()]
	for i, s := range srcs {
		if len(s) < len(dst) {
			panic(fmt.Sprintf("reduce: source %d has %d bytes, the output %d", i, len(s), len(dst)))
		}
	}
	return dst
}

// combineOn folds what has been checked. A mean without weights is divided by n.
func combineOn(p path, op Op, dt DType, dst []byte, srcs [][]byte, weights []float64, n int) {
	switch {
	case len(srcs) == 0 || len(dst) == 0:
		return
	case len(srcs) == 1 && n == 1:
		Copy(dst, srcs[0])
		return
	}
	observed(dst, srcs...)
	switch {
	case p != pathGo:
		foldC(p, op, dt, dst, srcs, weights, n)
	case dt == Float32:
		foldGo[float32](op, dst, srcs, weights, n)
	default:
		foldGo[float64](op, dst, srcs, weights, n)
	}
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
func Copy(dst, src []byte) int {
	n := min(len(dst), len(src))
	observed(dst[:n], src)
	if n <= piece || n > pastCaches {
		return copy(dst, src)
	}
	for at := 0; at < n; at += piece {
		copy(dst[at:min(at+piece, n)], src[at:])
	}
	return n
}

package reduce

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// paths are those of this machine, the reference first.
func paths() (ps []path) {
	for p := pathGo; p <= best(); p++ {
		ps = append(ps, p)
	}
	return ps
}

// stride thins the cases out where the race detector makes each of them slow.
var stride = 1

func init() {
	if raceDetector {
		stride = 10
	}
}

// twin is what Fold means, one element at a time and with nothing but the
// language's operators.
func twin(op Op, dt DType, own uint64, xs []uint64, weights []float64) uint64 {
	if !op.Weighted() || weights == nil {
		weights = nil
	} else {
		var kept []uint64
		var ws []float64
		for i, w := range weights {
			if w != 0 {
				kept, ws = append(kept, xs[i]), append(ws, w)
			}
		}
		xs, weights = kept, ws
		equal := true
		for _, w := range ws {
			equal = equal && w == ws[0]
		}
		if equal {
			weights = nil
		}
	}
	if len(xs) == 0 {
		return own
	}
	if len(xs) == 1 || op == Replace {
		return xs[len(xs)-1]
	}
	if dt == Float32 {
		vs := make([]float32, len(xs))
		for i, x := range xs {
			vs[i] = math.Float32frombits(uint32(x))
		}
		r := scalar(op, vs, weights)
		if r != r {
			return 0x7fc00000
		}
		return uint64(math.Float32bits(r))
	}
	vs := make([]float64, len(xs))
	for i, x := range xs {
		vs[i] = math.Float64frombits(x)
	}
	r := scalar(op, vs, weights)
	if r != r {
		return 0x7ff8000000000000
	}
	return math.Float64bits(r)
}

func scalar[T float](op Op, xs []T, weights []float64) T {
	if weights != nil {
		var sum, total float64
		for i, x := range xs {
			term := weights[i] * float64(x)
			if i == 0 {
				sum = term
			} else {
				sum += term
			}
			total += weights[i]
		}
		return T(sum / total)
	}
	r := xs[0]
	for _, x := range xs[1:] {
		switch op {
		case Min:
			if x < r || x != x || (x == r && math.Signbit(float64(x))) {
				r = x
			}
		case Max:
			if x > r || x != x || (x == r && !math.Signbit(float64(x))) {
				r = x
			}
		default:
			r += x
		}
	}
	if op.Weighted() {
		r /= T(len(xs))
	}
	return r
}

// special are values at which implementations differ.
var special32 = []uint32{
	0, 1 << 31, // both zeros
	0x7f800000, 0xff800000, // infinities
	0x7fc00000, 0xffc00000, 0x7fc12345, 0x7f800001, 0xffa00000, // NaNs, quiet and signalling
	1, 0x80000001, 0x007fffff, 0x00800000, // around the smallest normal
	0x7f7fffff, 0xff7fffff, // the largest
	0x3f800000, 0xbf800000,
}

var special64 = []uint64{
	0, 1 << 63,
	0x7ff0000000000000, 0xfff0000000000000,
	0x7ff8000000000000, 0xfff8000000000000, 0x7ff8000012345678, 0x7ff0000000000001, 0xfff4000000000000,
	1, 0x8000000000000001, 0x000fffffffffffff, 0x0010000000000000,
	0x7fefffffffffffff, 0xffefffffffffffff,
	0x3ff0000000000000, 0xbff0000000000000,
}

// fill makes n elements at b, one in four of them special.
func fill(r *rand.Rand, dt DType, b []byte, n int) {
	for i := range n {
		switch {
		case dt == Float32 && r.IntN(4) == 0:
			put(dt, b, i, uint64(special32[r.IntN(len(special32))]))
		case dt == Float32:
			put(dt, b, i, uint64(math.Float32bits(float32(r.NormFloat64()))))
		case r.IntN(4) == 0:
			put(dt, b, i, special64[r.IntN(len(special64))])
		default:
			put(dt, b, i, math.Float64bits(r.NormFloat64()))
		}
	}
}

func put(dt DType, b []byte, i int, bits uint64) {
	if dt == Float32 {
		binary.NativeEndian.PutUint32(b[4*i:], uint32(bits))
	} else {
		binary.NativeEndian.PutUint64(b[8*i:], bits)
	}
}

func get(dt DType, b []byte, i int) uint64 {
	if dt == Float32 {
		return uint64(binary.NativeEndian.Uint32(b[4*i:]))
	}
	return binary.NativeEndian.Uint64(b[8*i:])
}

// trial is one fold: what is folded, and how it lies in memory.
type trial struct {
	op      Op
	dt      DType
	n, k    int
	own     int // which operand the output is; k: none
	shift   int // bytes by which the output is off alignment; operands by others
	weights []float64
}

func (c trial) String() string {
	return fmt.Sprintf("%v of %d %v, %d operands, output is operand %d, shift %d, weights %v",
		c.op, c.n, c.dt, c.k, c.own, c.shift, c.weights)
}

// check folds on every path and compares with twin, and that nothing around the
// output changed. Returns the number of folds.
func (c trial) check(t *testing.T, r *rand.Rand) {
	t.Helper()
	const guard = 64
	size := c.n * c.dt.Size()
	space := make([][]byte, c.k+1) // the last is the output unless an operand is
	view := make([][]byte, c.k+1)
	for i := range space {
		at := guard + (c.shift*(i+1)+i)%16
		space[i] = bytes.Repeat([]byte{0xa5}, at+size+guard)
		view[i] = space[i][at:][:size]
		fill(r, c.dt, view[i], c.n)
	}
	before := make([][]byte, c.k+1)
	for i := range space {
		before[i] = bytes.Clone(space[i])
	}
	want := make([]uint64, c.n)
	xs := make([]uint64, c.k)
	for e := range want {
		for i := range xs {
			xs[i] = get(c.dt, view[i], e)
		}
		want[e] = twin(c.op, c.dt, get(c.dt, view[c.own], e), xs, c.weights)
	}
	for _, p := range paths() {
		for i := range space {
			copy(space[i], before[i])
		}
		foldOn(p, c.op, c.dt, [][]byte{view[c.own]}, view[:c.k], c.weights)
		for e := range want {
			if got := get(c.dt, view[c.own], e); got != want[e] {
				for i := range xs {
					xs[i] = get(c.dt, before[i][len(space[i])-guard-size:], e)
				}
				t.Fatalf("%v on %v: element %d is %#x, want %#x, of operands %#x", c, p, e, got, want[e], xs)
			}
		}
		for i := range space {
			if i == c.own {
				copy(view[i], before[i][len(space[i])-guard-size:])
			}
			if !bytes.Equal(space[i], before[i]) {
				t.Fatalf("%v on %v: bytes outside of the output changed, at operand %d", c, p, i)
			}
		}
	}
}

var (
	allOps    = []Op{Mean, MeanReceived, Sum, Min, Max, Replace}
	allDTypes = []DType{Float32, Float64}
)

// weightings for k operands: none, all equal, all different, some zero, all zero.
func weightings(k int) map[string][]float64 {
	m := map[string][]float64{"none": nil, "equal": make([]float64, k), "different": make([]float64, k), "some": make([]float64, k), "zero": make([]float64, k)}
	for i := range k {
		m["equal"][i] = 0.3
		m["different"][i] = 1 / float64(i+3)
		m["some"][i] = float64(i % 3)
	}
	return m
}

func TestEveryLengthAndAlignment(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, dt := range allDTypes {
		for _, op := range allOps {
			for n := 0; n <= 130; n += stride {
				for shift := range 8 {
					k := 1 + (n+shift)%5
					trial{op: op, dt: dt, n: n, k: k, own: (n*7 + shift) % (k + 1), shift: shift}.check(t, r)
					if op == Mean {
						trial{op: op, dt: dt, n: n, k: k, own: k, shift: shift, weights: weightings(k)["different"]}.check(t, r)
					}
				}
			}
		}
	}
}

// Counts of operands around the groups of the kernels and the room on the stack,
// lengths around the blocks.
func TestEveryNumberOfOperands(t *testing.T) {
	r := rand.New(rand.NewPCG(2, 2))
	for _, dt := range allDTypes {
		for _, op := range allOps[:(len(allOps)+stride-1)/stride] {
			for _, k := range []int{1, 2, 3, 7, 8, 9, 15, 16, 17, 18, 24, 25, 26, 33, 63, 64, 65, 130} {
				for _, n := range []int{1, 37, 511, 512, 513, 1023, 1024, 1025, 2055} {
					if k > 33 && n > 1025 {
						continue
					}
					trial{op: op, dt: dt, n: n, k: k, own: (k + n) % (k + 1), shift: n % 8}.check(t, r)
				}
			}
		}
		trial{op: Sum, dt: dt, n: 1030, k: 1024, own: 17, shift: 0}.check(t, r)
		trial{op: Mean, dt: dt, n: 1030, k: 1024, own: 1024, shift: 3, weights: weightings(1024)["different"]}.check(t, r)
	}
}

func TestWeights(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	for _, dt := range allDTypes {
		for _, op := range allOps[:(len(allOps)+stride-1)/stride] {
			for _, k := range []int{1, 2, 3, 4, 8, 9, 10, 17, 64, 65, 70} {
				for _, w := range weightings(k) {
					for _, n := range []int{0, 1, 15, 33, 1100} {
						trial{op: op, dt: dt, n: n, k: k, own: n % (k + 1), shift: 4 * (k % 2), weights: w}.check(t, r)
					}
				}
			}
		}
	}
}

func TestRandomFolds(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for range 2000 / stride {
		c := trial{op: allOps[r.IntN(len(allOps))], dt: allDTypes[r.IntN(2)], n: r.IntN(300), k: 1 + r.IntN(40), shift: r.IntN(8)}
		c.own = r.IntN(c.k + 1)
		if r.IntN(2) == 0 {
			c.weights = make([]float64, c.k)
			for i := range c.weights {
				c.weights[i] = []float64{0, 1, 0.1, 1e300, 1e-300, 3}[r.IntN(6)]
			}
		}
		c.check(t, r)
	}
}

// DESIGN section 6: mean = (own + Σ received) / (1 + k).
func TestMeanIsSumOverCount(t *testing.T) {
	t.Logf("in use: %s", Path())
	for _, p := range paths() {
		t.Run(p.String(), func(t *testing.T) { // the report of `make test` names them
			own := floats(1, 2, 3)
			foldOn(p, Mean, Float32, [][]byte{own}, [][]byte{own, floats(4, 4, 4), floats(7, 0, 2)}, nil)
			if want := floats(4, 2, 3); !bytes.Equal(own, want) {
				t.Errorf("mean is %v, want %v", own, want)
			}
			foldOn(p, MeanReceived, Float32, [][]byte{own}, [][]byte{floats(1, 1, 1), floats(3, 2, 5)}, nil)
			if want := floats(2, 1.5, 3); !bytes.Equal(own, want) {
				t.Errorf("mean-received is %v, want %v", own, want)
			}
		})
	}
}

func floats(xs ...float32) (b []byte) {
	for _, x := range xs {
		b = binary.NativeEndian.AppendUint32(b, math.Float32bits(x))
	}
	return b
}

// TestFoldSums: the mean of n operands is the sum of their sums, divided by n, on
// every path; of sums of one operand each it is the mean.
func TestFoldSums(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	for _, dt := range allDTypes {
		for _, elements := range []int{0, 1, 7, 64, 700} {
			for _, k := range []int{1, 2, 5, 20} {
				srcs := make([][]byte, k)
				for i := range srcs {
					srcs[i] = make([]byte, elements*dt.Size())
					fill(r, dt, srcs[i], elements)
				}
				xs := make([]uint64, k)
				for _, n := range []int{k, 3, 48} {
					for _, p := range paths() {
						got := make([]byte, elements*dt.Size())
						foldSumsOn(p, dt, [][]byte{got}, srcs, n)
						for e := range elements {
							for i := range xs {
								xs[i] = get(dt, srcs[i], e)
							}
							want := twin(Mean, dt, 0, xs, nil)
							if n != k {
								want = divided(dt, twin(Sum, dt, 0, xs, nil), n)
							}
							if get(dt, got, e) != want {
								t.Fatalf("%v, %v: %d sums of %d operands: element %d is %#x, want %#x", p, dt, k, n, e, get(dt, got, e), want)
							}
						}
					}
				}
			}
		}
	}
}

func divided(dt DType, x uint64, n int) uint64 {
	if dt == Float32 {
		if v := math.Float32frombits(uint32(x)) / float32(n); v == v {
			return uint64(math.Float32bits(v))
		}
		return 0x7fc00000
	}
	if v := math.Float64frombits(x) / float64(n); v == v {
		return math.Float64bits(v)
	}
	return 0x7ff8000000000000
}

// Weights that are all the same, whatever they are, change no bit.
func TestEqualWeightsCancel(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 5))
	const n, k = 100, 6
	for _, dt := range allDTypes {
		srcs := make([][]byte, k)
		for i := range srcs {
			srcs[i] = make([]byte, n*dt.Size())
			fill(r, dt, srcs[i], n)
		}
		want := make([]byte, n*dt.Size())
		Fold(Mean, dt, want, srcs, nil)
		for _, w := range []float64{1, 0.1, 1e-300, 1e300} {
			got := make([]byte, n*dt.Size())
			Fold(Mean, dt, got, srcs, []float64{w, w, w, w, w, w})
			if !bytes.Equal(got, want) {
				t.Errorf("%v: weights of %v changed the mean", dt, w)
			}
		}
	}
}

// A weighted mean of one value of float32 is that value: the errors of float64
// do not reach it.
func TestWeightedMeanKeepsConstants(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for range 1000 {
		x := floats(float32(r.NormFloat64() * math.Exp(r.NormFloat64()*20)))
		k := 2 + r.IntN(20)
		srcs, ws := make([][]byte, k), make([]float64, k)
		for i := range srcs {
			srcs[i], ws[i] = x, r.Float64()*1e5
		}
		got := make([]byte, 4)
		Fold(Mean, Float32, got, srcs, ws)
		if !bytes.Equal(got, x) {
			t.Fatalf("mean of %d times %v is %v with weights %v", k, x, got, ws)
		}
	}
}

// G1: with one rank nothing is computed, so nothing changes, signalling NaN included.
func TestOneOperandIsCopied(t *testing.T) {
	for _, op := range allOps {
		src := binary.NativeEndian.AppendUint32(nil, 0x7f800001)
		dst := make([]byte, 4)
		Fold(op, Float32, dst, [][]byte{src}, []float64{0.25})
		if !bytes.Equal(dst, src) {
			t.Errorf("%v of one operand %x is %x", op, src, dst)
		}
	}
}

// TestSeveralOutputs: each gets the bits of a fold into one, also where it is one of
// the operands, and nothing beside it changes.
func TestSeveralOutputs(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	// Every tail where one group of operands is folded and where several are, which is
	// done in blocks: some of those, too.
	lengths := func(k int) (all []int) {
		step := 13 * stride
		if k == 3 || k == 9 {
			step = stride
		}
		for n := 0; n <= 130; n += step {
			all = append(all, n)
		}
		return append(all, 1023, 1025, 2600)
	}
	const guard = 64
	for _, p := range paths() {
		for _, dt := range allDTypes {
			for _, op := range allOps {
				for _, k := range []int{1, 2, 3, 8, 9, 17} {
					for _, n := range lengths(k) {
						for name, weights := range weightings(k) {
							size := n * dt.Size()
							all := make([][]byte, k+1) // the last is an output alone
							views := make([][]byte, k+1)
							for i := range all {
								at := guard + i%9
								all[i] = bytes.Repeat([]byte{0xa5}, at+size+guard)
								views[i] = all[i][at:][:size]
								fill(r, dt, views[i], n)
							}
							want := bytes.Clone(views[k])
							foldOn(p, op, dt, [][]byte{want}, views[:k], weights)
							kept, nothing := bytes.Clone(views[0]), op.Weighted() && weights != nil && total(weights) == 0
							outputs := views[k/2:]
							foldOn(p, op, dt, outputs, views[:k], weights)
							for i, v := range views {
								switch {
								case i == 0 && k/2 > 0:
									if !bytes.Equal(v, kept) {
										t.Fatalf("%v, %v of %d x %d %v: operand 0 is no output, and changed", p, op, k, n, dt)
									}
								case i >= k/2 && !nothing && !bytes.Equal(v, want):
									t.Fatalf("%v, %v of %d x %d %v, weights %s: output %d differs from a single one", p, op, k, n, dt, name, i-k/2)
								}
								if at := guard + i%9; bytes.Count(all[i][:at], []byte{0xa5}) != at || bytes.Count(all[i][at+size:], []byte{0xa5}) != guard {
									t.Fatalf("%v, %v of %d x %d %v: bytes beside array %d changed", p, op, k, n, dt, i)
								}
							}
						}
					}
				}
			}
		}
	}
}

// TestCopy: every byte and none behind, whole or in pieces.
func TestCopy(t *testing.T) {
	src := make([]byte, pastCaches+2*piece)
	for i := range src {
		src[i] = byte(i ^ i>>8 ^ i>>16)
	}
	for _, n := range []int{0, 1, piece - 1, piece, piece + 1, 3*piece + 5, pastCaches - 1, pastCaches, pastCaches + 1} {
		dst := make([]byte, len(src))
		if got := Copy(dst[:n], src); got != n {
			t.Errorf("%d bytes copied, want %d", got, n)
		}
		if !bytes.Equal(dst[:n], src[:n]) || !bytes.Equal(dst[n:], make([]byte, len(dst)-n)) {
			t.Errorf("%d bytes: other bytes, or more", n)
		}
	}
}

func TestNoOperandsLeaveTheOutput(t *testing.T) {
	for _, op := range allOps {
		dst := floats(1, 2)
		Fold(op, Float32, dst, nil, nil)
		if !bytes.Equal(dst, floats(1, 2)) {
			t.Errorf("%v of nothing wrote %v", op, dst)
		}
	}
	dst := floats(1, 2)
	Fold(Mean, Float32, dst, [][]byte{floats(5, 5), floats(6, 6)}, []float64{0, 0})
	if !bytes.Equal(dst, floats(1, 2)) {
		t.Errorf("a mean of weight 0 wrote %v", dst)
	}
}

func TestRestOfAnElementIsLeft(t *testing.T) {
	dst := append(floats(1), 9, 9, 9)
	src := append(floats(2), 1, 1, 1)
	for _, op := range allOps {
		Fold(op, Float32, dst, [][]byte{src, src}, nil)
		if !bytes.Equal(dst[4:], []byte{9, 9, 9}) {
			t.Errorf("%v wrote behind the last whole element: %v", op, dst)
		}
	}
}

func TestDefectsOfTheCallerPanic(t *testing.T) {
	a, b := floats(1, 2), floats(1)
	for want, fold := range map[string]func(){
		"source 1 has 4 bytes":    func() { Fold(Sum, Float32, a, [][]byte{a, b}, nil) },
		"1 weights for 2 sources": func() { Fold(Mean, Float32, a, [][]byte{a, a}, []float64{1}) },
		"no fold Op(0)":           func() { Fold(0, Float32, a, [][]byte{a, a}, nil) },
		"of DType(7)":             func() { Fold(Sum, 7, a, [][]byte{a, a}, nil) },
	} {
		func() {
			defer func() {
				if got := fmt.Sprint(recover()); !strings.Contains(got, want) {
					t.Errorf("panic %q, want %q", got, want)
				}
			}()
			fold()
		}()
	}
	if !bytes.Equal(a, floats(1, 2)) {
		t.Errorf("a refused fold wrote %v", a)
	}
}

func TestNoAllocation(t *testing.T) {
	for _, k := range []int{2, 8, onStack} {
		srcs, ws := make([][]byte, k), make([]float64, k)
		for i := range srcs {
			srcs[i], ws[i] = make([]byte, 4096), float64(i+1)
		}
		for _, p := range paths() {
			for _, w := range [][]float64{nil, ws} {
				if n := testing.AllocsPerRun(10, func() { foldOn(p, Mean, Float32, srcs[:1], srcs, w) }); n != 0 {
					t.Errorf("%v, %d operands: %v allocations per fold, want none", p, k, n)
				}
			}
		}
	}
}

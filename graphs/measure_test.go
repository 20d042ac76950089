package graphs

import (
	"fmt"
	"math"
	"testing"

	"gonum.org/v1/gonum/mat"
)

// Reference values; NaN where there is none.
func TestMeasuresReference(t *testing.T) {
	none := math.NaN()
	for _, c := range []struct {
		spec             string
		size             int
		second, smallest float64
		digits           int
	}{
		{"halton", 8, .500, -.50, 2}, {"chord", 8, .500, -.18, 2},
		{"halton", 16, .825, -.60, 2}, {"chord", 16, .600, none, 3},
		{"halton", 32, .850, none, 3}, {"chord", 32, .667, none, 3},
		{"halton", 4, none, -.33, 2},
		{"all", 2, 0, 0, 12}, {"all", 7, 0, 0, 12}, {"all", 64, 0, 0, 12},
		{"ring", 2, 0, 0, 12}, {"ring", 4, math.Sqrt(.5), 0, 12},
		{"star", 3, .5, -1. / 6, 12}, {"star", 16, .5, 1./16 - .5, 12},
		{"hypercube", 16, .6, -.6, 12}, {"hypercube", 2, 0, 0, 12},
		{"halton-paper", 8, 1, 0, 12},
		{"one-peer", 8, 0, 0, 12}, {"one-peer", 3, .5, .25, 12},
		{"ring", 1, 0, 1, 12}, {"star", 1, 0, 1, 12},
	} {
		m := measure(t, parse(t, c.spec, c.size))
		if differs(m.SecondEigenvalue, c.second, max(c.digits, 3)) || differs(m.SmallestRealPart, c.smallest, c.digits) {
			t.Errorf("%s of %d: second eigenvalue %.6f, want %v; smallest real part %.6f, want %v",
				c.spec, c.size, m.SecondEigenvalue, c.second, m.SmallestRealPart, c.smallest)
		}
	}
}

func differs(got, want float64, digits int) bool {
	return math.Abs(got-want) > 0.5000001*math.Pow10(-digits)
}

func TestTrafficReference(t *testing.T) {
	for _, c := range []struct {
		spec string
		want Measures
	}{
		{"all", Measures{Edges: 56, DegreeMin: 7, DegreeMax: 7, Diameter: 1, Connected: true}},
		{"ring", Measures{Edges: 8, DegreeMin: 1, DegreeMax: 1, Diameter: 7, Connected: true}},
		{"halton", Measures{Edges: 24, DegreeMin: 3, DegreeMax: 3, Diameter: 3, Connected: true}},
		{"halton-paper", Measures{Edges: 24, DegreeMin: 3, DegreeMax: 3, Diameter: -1}},
		{"star", Measures{Edges: 14, DegreeMin: 1, DegreeMax: 7, Diameter: 2, Connected: true}},
		{"hypercube", Measures{Edges: 24, DegreeMin: 3, DegreeMax: 3, Diameter: 3, Connected: true}},
		{"one-peer", Measures{Edges: 8, DegreeMin: 1, DegreeMax: 1, Diameter: 3, Connected: true}},
		{"lists:1,2/2/0/////", Measures{Edges: 4, DegreeMin: 0, DegreeMax: 2, Diameter: -1}},
	} {
		m := measure(t, parse(t, c.spec, 8))
		c.want.Size, c.want.SecondEigenvalue, c.want.SmallestRealPart = 8, m.SecondEigenvalue, m.SmallestRealPart
		if m != c.want {
			t.Errorf("%s: %+v, want %+v", c.spec, m, c.want)
		}
	}
}

func TestRingAndAllHaveNoNegativeRealPart(t *testing.T) {
	for size := 1; size <= 100; size++ {
		for _, spec := range []string{"all", "ring", "one-peer"} {
			if m := measure(t, parse(t, spec, size)); m.SmallestRealPart < 0 {
				t.Errorf("%s of %d: smallest real part %v", spec, size, m.SmallestRealPart)
			}
		}
	}
}

// Flat graphs are measured by a Fourier transform and one walk; the same graph
// as lists goes through the matrix and all walks.
func TestFlatAgainstMatrix(t *testing.T) {
	for size := 1; size <= 48; size++ {
		for _, spec := range []string{"all", "ring", "chord", "halton", "halton-paper"} {
			flat := parse(t, spec, size)
			lists := make([][]int, size)
			for rank := range lists {
				lists[rank] = flat.Receivers(rank, 1)
			}
			other, err := FromLists(lists)
			if err != nil {
				t.Fatal(err)
			}
			a, b := measure(t, flat), measure(t, other)
			if math.Abs(a.SecondEigenvalue-b.SecondEigenvalue) > 1e-6 || math.Abs(a.SmallestRealPart-b.SmallestRealPart) > 1e-6 {
				t.Errorf("%s of %d: %+v, as lists %+v", spec, size, a, b)
			}
			b.SecondEigenvalue, b.SmallestRealPart = a.SecondEigenvalue, a.SmallestRealPart
			if a != b {
				t.Errorf("%s of %d: %+v, as lists %+v", spec, size, a, b)
			}
		}
	}
}

// Symmetric or not, in blocks or not, the eigenvalues are those of gonum/mat.
func TestEigenvaluesAgainstMat(t *testing.T) {
	for _, of := range []struct {
		spec string
		size int
	}{{"star", 5}, {"random:2", 12}, {"hypercube", 16}, {"random:3", 100}, {"star", 150}, {"random:2", 200}, {"hypercube", 256}} {
		g := parse(t, of.spec, of.size)
		var e mat.Eigen
		if !e.Factorize(mat.NewDense(of.size, of.size, g.averaging()), mat.EigenNone) {
			t.Fatalf("%s of %d: no eigenvalues", of.spec, of.size)
		}
		values, err := eigenvalues(of.size, g.averaging())
		if err != nil {
			t.Fatal(err)
		}
		got, want := summarise(values), summarise(e.Values(nil))
		if math.Abs(got.second-want.second) > 1e-6 || math.Abs(got.smallest-want.smallest) > 1e-6 {
			t.Errorf("%s of %d: %+v, by gonum/mat %+v", of.spec, of.size, got, want)
		}
	}
}

// one-peer's product over a period, multiplied out.
func TestOnePeerAgainstProduct(t *testing.T) {
	for size := 2; size <= 40; size++ {
		g := parse(t, "one-peer", size)
		product := mat.NewDense(size, size, nil)
		for i := range size {
			product.Set(i, i, 1)
		}
		for clock := range uint64(g.Period()) {
			w := mat.NewDense(size, size, nil)
			for rank := range size {
				w.Set(rank, rank, .5)
				w.Set(rank, g.Senders(rank, clock+1)[0], .5)
			}
			next := new(mat.Dense)
			next.Mul(w, product)
			product = next
		}
		values, err := eigenvalues(size, product.RawMatrix().Data)
		if err != nil {
			t.Fatal(err)
		}
		want := math.Pow(summarise(values).second, 1/float64(g.Period()))
		if got := measure(t, g).SecondEigenvalue; math.Abs(got-want) > 1e-4 {
			t.Errorf("one-peer of %d: %v per clock, the product gives %v", size, got, want)
		}
	}
}

// The second eigenvalue is what a person sees: averaging shrinks the spread
// between ranks by this factor at each step.
func TestSecondEigenvalueIsTheRateOfAgreement(t *testing.T) {
	for _, spec := range []string{"ring", "chord", "halton", "star", "hypercube", "random:3", "one-peer"} {
		for _, size := range []int{8, 13, 16, 32} {
			g, err := Parse(spec, size)
			if err != nil || spec == "one-peer" && size != 13 { // no hypercube of 13; powers of two agree at once
				continue
			}
			const steps = 600 // a multiple of one-peer's period at 13 ranks
			values := make([]float64, size)
			for rank := range values {
				values[rank] = math.Sin(float64(7 * rank * rank))
			}
			log := 0.0 // of the spread, kept at 1 lest it underflow
			for clock := range uint64(steps) {
				values = gather(g, clock+1, values)
				log += normalise(values)
			}
			got, want := math.Exp(log/steps), measure(t, g).SecondEigenvalue
			if math.Abs(got-want) > 0.01 {
				t.Errorf("%s of %d: the spread shrinks by %.4f at each step, second eigenvalue %.4f", spec, size, got, want)
			}
		}
	}
}

// normalise shifts values to have 0 in the middle and scales them to a spread
// of 1; it returns the logarithm of the spread before.
func normalise(values []float64) float64 {
	low, high := math.Inf(1), math.Inf(-1)
	for _, v := range values {
		low, high = min(low, v), max(high, v)
	}
	for i := range values {
		values[i] = (values[i] - (low+high)/2) / (high - low)
	}
	return math.Log(high - low)
}

// The second trap: descent on |x|² at every rank, with gradients averaged over
// the graph. Replicas that start a little apart drift away from each other if,
// and only if, the smallest real part is negative.
func TestGradientsDriftWhereRealPartsAreNegative(t *testing.T) {
	for _, c := range []struct {
		spec   string
		size   int
		drifts bool
	}{
		{"all", 8, false}, {"ring", 9, false}, {"halton", 4, true}, {"halton", 8, true}, {"halton", 16, true}, {"chord", 8, true},
	} {
		g := parse(t, c.spec, c.size)
		x := make([]float64, c.size)
		for rank := range x {
			x[rank] = 1 + math.Sin(float64(3*rank*rank))/100
		}
		for clock := range uint64(500) {
			for rank, mean := range gather(g, clock+1, x) { // the gradient of |x|²/2 is x
				x[rank] -= 0.1 * mean
			}
		}
		spread := math.Exp(normalise(x))
		negative := measure(t, g).SmallestRealPart < 0
		if drifted := spread > 1; drifted != c.drifts || negative != c.drifts {
			t.Errorf("%s of %d: replicas end %.3g apart, smallest real part negative: %v; want drift: %v", c.spec, c.size, spread, negative, c.drifts)
		}
	}
}

func TestMeasureLimit(t *testing.T) {
	g := parse(t, "star", MaxMeasured+1)
	_, err := g.Measure()
	wantError(t, err, fmt.Sprintf("star of %d ranks is too large to measure", MaxMeasured+1), fmt.Sprint("Take at most ", MaxMeasured))
	if err := g.CheckConnected(); err != nil {
		t.Error(err)
	}
	if m := measure(t, parse(t, "all", MaxSize)); m.Edges != MaxSize*(MaxSize-1) || m.Edges > math.MaxInt32 || m.Diameter != 1 {
		t.Errorf("all of %d: %+v", MaxSize, m)
	}
}

package graphs

import (
	"errors"
	"math"
	"math/cmplx"
	"slices"
	"strings"

	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/mat"

	"malt/internal/say"
)

// MaxMeasured is the largest graph whose eigenvalues Measure computes, flat
// graphs apart.
const MaxMeasured = 2048

// spectrum is what Measure needs of a graph's eigenvalues.
type spectrum struct {
	second   float64 // see Measures.SecondEigenvalue
	smallest float64 // see Measures.SmallestRealPart
}

func (g *Graph) spectrum() (spectrum, error) {
	if g.receivers == nil {
		return g.flatSpectrum(), nil
	}
	if g.size > MaxMeasured {
		name, _, _ := strings.Cut(g.spec, ":")
		return spectrum{}, say.Errorf(nil, "graph %s of %d ranks is too large to measure", name, g.size).Try("Take at most %d ranks.", MaxMeasured)
	}
	values, err := eigenvalues(g.averaging())
	if err != nil {
		return spectrum{}, say.Errorf(err, "graph %s of %d ranks cannot be measured: %v", g.spec, g.size, err)
	}
	return summarise(values), nil
}

func summarise(values []complex128) spectrum {
	s := spectrum{smallest: math.Inf(1)}
	moduli := make([]float64, len(values))
	for i, v := range values {
		moduli[i] = cmplx.Abs(v)
		s.smallest = min(s.smallest, real(v))
	}
	slices.Sort(moduli)
	if n := len(moduli); n > 1 {
		s.second = moduli[n-2] // the largest is the 1 of the all-equal vector
	}
	return s.clean()
}

// clean takes away the rounding of values that are exactly 0 or 1, so that a
// sign means something. Where eigenvectors coincide, eigenvalues are exact only
// to the square root of the machine's precision, or worse.
func (s spectrum) clean() spectrum {
	const rounding = 1e-6
	for _, v := range []*float64{&s.second, &s.smallest} {
		for _, exact := range []float64{0, 1} {
			if math.Abs(*v-exact) < rounding {
				*v = exact
			}
		}
	}
	return s
}

// averaging is the matrix of one gather of the mean: row r has equal weights at
// r and at its senders.
func (g *Graph) averaging() *mat.Dense {
	w := mat.NewDense(g.size, g.size, nil)
	for rank, senders := range g.senders {
		weight := 1 / float64(len(senders)+1)
		w.Set(rank, rank, weight)
		for _, from := range senders {
			w.Set(rank, from, weight)
		}
	}
	return w
}

func eigenvalues(w *mat.Dense) ([]complex128, error) {
	if n, _ := w.Dims(); mat.Equal(w, w.T()) {
		var e mat.EigenSym
		if !e.Factorize(mat.NewSymDense(n, w.RawMatrix().Data), false) {
			return nil, errors.New("its eigenvalues did not converge")
		}
		values := make([]complex128, n)
		for i, v := range e.Values(nil) {
			values[i] = complex(v, 0)
		}
		return values, nil
	}
	var e mat.Eigen
	if !e.Factorize(w, mat.EigenNone) {
		return nil, errors.New("its eigenvalues did not converge")
	}
	return e.Values(nil), nil
}

// flatSpectrum uses that the averaging matrix of a flat graph is circulant: its
// eigenvalues are the Fourier transform of one row. Matrices of different
// clocks commute, so the eigenvalues of their product are the products.
func (g *Graph) flatSpectrum() spectrum {
	fft := fourier.NewCmplxFFT(g.size)
	period := g.Period()
	product := make([]float64, g.size) // of the moduli
	for i := range product {
		product[i] = 1
	}
	s := spectrum{smallest: math.Inf(1)}
	for clock := range period {
		offsets := g.at(uint64(clock + 1))
		weight := complex(1/float64(len(offsets)+1), 0)
		row := make([]complex128, g.size)
		row[0] = weight
		for _, o := range offsets {
			row[o] = weight
		}
		for i, v := range fft.Coefficients(nil, row) {
			product[i] *= cmplx.Abs(v)
			s.smallest = min(s.smallest, real(v))
		}
	}
	// Value 0 is the 1 of the all-equal vector.
	s.second = math.Pow(slices.Max(append(product[1:], 0)), 1/float64(period))
	return s.clean()
}

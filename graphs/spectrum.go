package graphs

import (
	"errors"
	"math"
	"math/cmplx"
	"slices"
	"strings"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/dsp/fourier"
	"gonum.org/v1/gonum/lapack"
	"gonum.org/v1/gonum/lapack/gonum"

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
	values, err := eigenvalues(g.size, g.averaging())
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

// averaging is the matrix of one gather of the mean, row by row: row r has equal
// weights at r and at its senders.
func (g *Graph) averaging() []float64 {
	w := make([]float64, g.size*g.size)
	for rank, senders := range g.senders {
		row, weight := w[rank*g.size:], 1/float64(len(senders)+1)
		row[rank] = weight
		for _, from := range senders {
			row[from] = weight
		}
	}
	return w
}

// eigenvalues returns those of the n × n matrix w, and overwrites it. It takes the steps of
// LAPACK's DSYEV and DGEEV that need no eigenvectors: gonum/mat brings code for these as well.
func eigenvalues(n int, w []float64) ([]complex128, error) {
	var l gonum.Implementation
	re, im, tau := make([]float64, n), make([]float64, n), make([]float64, n)
	work := make([]float64, 64*(n+65)) // for blocks of 64 columns, as DGEHRD takes them; the others need less
	var converged bool
	if symmetric(n, w) {
		l.Dsytrd(blas.Upper, n, w, n, re, im, tau, work, len(work))
		converged = l.Dsterf(n, re, im)
		clear(im)
	} else {
		first, last := l.Dgebal(lapack.PermuteScale, n, w, n, tau)
		l.Dgehrd(n, first, last, w, n, tau[:n-1], work, len(work))
		converged = l.Dhseqr(lapack.EigenvaluesOnly, lapack.SchurNone, n, first, last, w, n, re, im, nil, 1, work, len(work)) == 0
	}
	if !converged {
		return nil, errors.New("its eigenvalues did not converge")
	}
	values := make([]complex128, n)
	for i := range values {
		values[i] = complex(re[i], im[i])
	}
	return values, nil
}

func symmetric(n int, w []float64) bool {
	for i := range n {
		for j := range i {
			if w[i*n+j] != w[j*n+i] {
				return false
			}
		}
	}
	return true
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

package filter

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"malt/internal/say"
	"malt/libmalt/spvec"
)

// Kind is the family of a filter.
type Kind uint8

const (
	None    Kind = iota // all rows go
	Largest             // dvf: by the largest element
	Length              // dvf-l2: by the length of what is held back
	Top                 // top: by their number
)

// Filter is a rule with its numbers. The zero value sends all.
type Filter struct {
	Kind Kind
	// D is the distance of dvf and dvf-l2, or the percentage of top. A large distance
	// sends nothing until a row has moved that far; a small one holds nothing back.
	D float64
	// U is the distance of dvf while a receiver is late; D or more.
	U float64

	sorted []float64 // room for smallest
}

var names = []string{None: "", Largest: "dvf", Length: "dvf-l2", Top: "top"}

// Names returns the filters as they are written, each with a number.
func Names() []string { return []string{"dvf:0.1", "dvf-l2:0.1", "top:1%"} }

// Parse reads "dvf:D", "dvf:D:U", "dvf-l2:D" or "top:P%".
func Parse(s string) (f Filter, err error) {
	words := strings.Split(s, ":")
	f.Kind = Kind(max(0, slices.Index(names, words[0])))
	if f.Kind == None {
		e := say.Unknown(nil, "filter", words[0], names[Largest:]...)
		e.Where = "it is one of dvf:D, dvf:D:U, dvf-l2:D, top:P%"
		return f, e
	}
	refused := func(expected string) (Filter, error) {
		return Filter{}, say.Errorf(nil, "filter %.40q: expected %s", s, expected).Try("Write, for example, %s.", Names()[f.Kind-1])
	}
	most, last := 1e100, words[len(words)-1] // its square times any number of rows is finite
	if f.Kind == Top {
		if most = 100; !strings.HasSuffix(last, "%") {
			return refused("a percentage")
		}
		words[len(words)-1] = strings.TrimSuffix(last, "%")
	}
	if len(words) != 2 && (f.Kind != Largest || len(words) != 3) {
		if f.Kind == Largest {
			return refused("one or two numbers after the colon")
		}
		return refused("one number after the colon")
	}
	for i, to := range []*float64{&f.D, &f.U}[:len(words)-1] {
		if *to, err = strconv.ParseFloat(words[1+i], 64); err != nil || !(*to >= 0) || *to > most {
			return refused("a number from 0 to " + short(most))
		}
	}
	switch {
	case f.Kind == Top && f.D == 0:
		return refused("more than 0 %, which would send nothing")
	case len(words) == 3 && f.U < f.D:
		return refused("a second distance, for late receivers, that is not less than the first")
	}
	return f, nil
}

// String is the canonical form, which Parse reads back.
func (f Filter) String() string {
	s := names[f.Kind] + ":" + short(f.D)
	switch {
	case f.Kind == Top:
		s += "%"
	case f.Asks():
		s += ":" + short(f.U)
	}
	return s
}

func short(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// On tells whether a row can be held back: 0 holds back nothing, nor a 0 of another sign.
func (f *Filter) On() bool { return f.D > 0 || f.U > 0 }

// Asks tells whether it matters that a receiver is late.
func (f *Filter) Asks() bool { return f.U > 0 }

// Measure says how far a row is that Due is to judge.
func (f *Filter) Measure() spvec.Measure {
	if f.Kind == Length {
		return spvec.Squares
	}
	return spvec.LargestElement
}

// Due are those of rows, which ascend and are so far from what was sent, that go in the message of
// this clock, from 1; they take the place of the first of rows.
func (f *Filter) Due(rows []uint32, far []float64, s spvec.Shape, clock uint64, late bool) []uint32 {
	limit, ties := f.limit(far, s, float64(clock), late)
	due := rows[:0]
	for i, row := range rows {
		switch {
		case far[i] < limit:
		case far[i] == limit && ties > 0:
			ties--
		default:
			due = append(due, row)
		}
	}
	return due
}

// limit is the distance below which rows are held back, and how many that are just that far.
func (f *Filter) limit(far []float64, s spvec.Shape, t float64, late bool) (limit float64, ties int) {
	switch f.Kind {
	case Largest:
		if limit = f.D; late {
			limit = max(f.D, f.U)
		}
		if limit > 0 { // not so with U, while none is late
			ties = len(far)
		}
		return limit / math.Sqrt(t), ties
	case Length:
		f.sorted = append(f.sorted[:0], far...)
		return smallest(f.sorted, func(square float64) float64 { return square }, f.D*f.D*float64(s.Rows*s.Width)/t)
	}
	f.sorted = append(f.sorted[:0], far...)
	each := func(x float64) float64 {
		if math.IsInf(x, 1) {
			return x // not to be held back
		}
		return 1
	}
	return smallest(f.sorted, each, max(0, float64(len(far))-math.Ceil(f.D/100*float64(s.Rows))))
}

// smallest takes values of xs, the smallest first, while they cost budget at most: all below limit,
// and ties that are equal to it. It reorders xs.
func smallest(xs []float64, cost func(x float64) float64, budget float64) (limit float64, ties int) {
	for len(xs) > 0 {
		pivot, low, high, sum := xs[len(xs)/2], 0, len(xs), 0.0
		for i := low; i < high; {
			switch x := xs[i]; {
			case x < pivot:
				sum += cost(x)
				xs[i], xs[low] = xs[low], x
				low, i = low+1, i+1
			case x > pivot:
				high--
				xs[i], xs[high] = xs[high], x
			default:
				i++
			}
		}
		each, equal := cost(pivot), high-low
		switch {
		case sum > budget:
			xs = xs[:low]
		case sum+each*float64(equal) > budget:
			return pivot, int((budget - sum) / each)
		default:
			budget -= sum + each*float64(equal)
			xs = xs[high:]
		}
	}
	return math.Inf(1), 0
}

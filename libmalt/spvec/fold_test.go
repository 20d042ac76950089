package spvec

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// naive is what Fold means, element by element over whole vectors.
func naive(op Op, absent Absent, s Shape, own []byte, before int, weight float64, us []Update) []byte {
	out := slices.Clone(own)
	whole := make([][]byte, len(us))
	has := make([]map[uint32]bool, len(us))
	for i := range us {
		whole[i], has[i] = zeroed(s.Bytes()), map[uint32]bool{}
		us[i].Expand(whole[i], s)
		for _, r := range us[i].mentioned(s) {
			has[i][r] = true
		}
	}
	mean := op == Mean || op == MeanReceived
	for e := range s.Rows * s.Width {
		row := uint32(e / s.Width)
		var xs, ws []float64
		add := func(x, w float64) {
			if !mean || w > 0 {
				xs, ws = append(xs, x), append(ws, w)
			}
		}
		some := false
		for i := range us {
			if i == before && op != MeanReceived && op != Replace {
				add(get(s, own, e), weight)
			}
			if absent == Zero || has[i][row] {
				add(get(s, whole[i], e), us[i].Weight)
				some = some || !mean || us[i].Weight > 0
			}
		}
		if before >= len(us) && op != MeanReceived && op != Replace {
			add(get(s, own, e), weight)
		}
		if !some || len(xs) == 0 {
			continue
		}
		x, sum := xs[0], 0.0
		for _, w := range ws {
			sum += w
		}
		switch op {
		case Replace:
			x = xs[len(xs)-1]
		case Min:
			x = slices.Min(xs)
		case Max:
			x = slices.Max(xs)
		case Sum:
			for _, y := range xs[1:] {
				x += y
			}
		default:
			x = 0
			for i, y := range xs {
				x += y * ws[i]
			}
			x /= sum
		}
		set(s, out, e, x)
	}
	return out
}

// TestFoldIsNaive: whole numbers and weights, so that sums are exact.
func TestFoldIsNaive(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 8))
	var folder Folder
	for range 60 {
		for _, s := range shapes {
			for op := Mean; op <= Replace; op++ {
				for absent := Keep; absent <= Zero; absent++ {
					foldIsNaive(t, r, &folder, op, absent, s)
				}
			}
		}
	}
	for i, s := range long {
		for op := Mean; op <= Replace; op++ {
			foldIsNaive(t, r, &folder, op, Keep+Absent((i+int(op))%2), s)
		}
	}
}

func foldIsNaive(t *testing.T, r *rand.Rand, folder *Folder, op Op, absent Absent, s Shape) {
	k := r.IntN(4)
	us := make([]Update, k)
	for i := range us {
		rows := some(r, s, []float64{0, 0.05, 0.5, 2}[r.IntN(4)])
		var ages []uint32 // rows of age 2 are skipped
		for range len(rows) * r.IntN(2) {
			ages = append(ages, uint32(r.IntN(3)))
		}
		m, kind := message(s, integers(r, s, rows), rows, ages)
		if err := us[i].Decode(kind, m, s, 5, 3); err != nil {
			t.Fatal(err)
		}
		us[i].Weight = []float64{1, 1, 2, 0}[r.IntN(4)]
	}
	weight := []float64{1, 1, 2, 0}[r.IntN(4)]
	before := r.IntN(k + 1)
	own := integers(r, s, some(r, s, 0.5))
	want := naive(op, absent, s, own, before, weight, us)
	folder.Fold(op, absent, s, own, before, weight, us)
	for e := range s.Rows * s.Width {
		if get(s, own, e) != get(s, want, e) {
			t.Fatalf("op %d, absent %d, %+v, %d updates, own behind %d of weight %v: element %d is %v, want %v",
				op, absent, s, k, before, weight, e, get(s, own, e), get(s, want, e))
		}
	}
}

// TestMeanOfTwoGradients, with every bit of the elements in use.
func TestMeanOfTwoGradients(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	for _, s := range slices.Concat(shapes, long) {
		gradient := func() ([]byte, []uint32) {
			rows, b := some(r, s, 0.3), zeroed(s.Bytes())
			for _, row := range rows {
				for e := range s.Width {
					set(s, b, int(row)*s.Width+e, r.NormFloat64())
				}
			}
			return b, rows
		}
		own, _ := gradient()
		other, rows := gradient()
		want := zeroed(s.Bytes())
		for e := range s.Rows * s.Width {
			if s.Elem == 4 {
				view[float32](want)[e] = (view[float32](own)[e] + view[float32](other)[e]) / 2
			} else {
				view[float64](want)[e] = (view[float64](own)[e] + view[float64](other)[e]) / 2
			}
		}
		m, kind := message(s, other, rows, nil)
		us := make([]Update, 1)
		if err := us[0].Decode(kind, m, s, 1, 0); err != nil {
			t.Fatal(err)
		}
		new(Folder).Fold(Mean, Zero, s, own, 0, 1, us)
		for e := range s.Rows * s.Width {
			if get(s, own, e) != get(s, want, e) {
				t.Fatalf("%+v: element %d is %v, want %v", s, e, get(s, own, e), get(s, want, e))
			}
		}
	}
}

// TestFoldAddsInOrder: 2⁵³ + 1 - 2⁵³ is 0 or 1 by the order of operands.
func TestFoldAddsInOrder(t *testing.T) {
	s := Shape{Rows: 4, Width: 1, Elem: 8}
	one := func(x float64) Update {
		data := zeroed(s.Bytes())
		set(s, data, 2, x)
		m, kind := message(s, data, []uint32{2}, nil)
		var u Update
		if err := u.Decode(kind, m, s, 1, 0); err != nil {
			t.Fatal(err)
		}
		return u
	}
	const big = 1 << 53
	for _, absent := range []Absent{Keep, Zero} {
		for before, want := range []float64{0, 0, 1} { // 1+big-big, big+1-big, big-big+1
			own := zeroed(s.Bytes())
			set(s, own, 2, 1)
			new(Folder).Fold(Sum, absent, s, own, before, 1, []Update{one(big), one(-big)})
			if got := get(s, own, 2); got != want {
				t.Errorf("own behind %d: %v, want %v", before, got, want)
			}
		}
	}
}

func TestFindSeesEveryBit(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for _, s := range slices.Concat(shapes, long) {
		for _, share := range []float64{0, 0.02, 0.5, 2} {
			rows := some(r, s, share)
			base := integers(r, s, every(s))
			data, alone := slices.Clone(base), zeroed(s.Bytes())
			for _, row := range rows {
				bit := int(row)*s.RowBytes()*8 + r.IntN(s.RowBytes()*8)
				data[bit/8] ^= 1 << (bit % 8)
				alone[bit/8] ^= 1 << (bit % 8)
			}
			if got := Changed(nil, s, data, base); !slices.Equal(got, rows) {
				t.Errorf("%+v: changed %v, want %v", s, got, rows)
			}
			if got := NonZero(nil, s, alone, s.Rows+1); !slices.Equal(got, rows) {
				t.Errorf("%+v: not zero %v, want %v", s, got, rows)
			}
			if got := NonZero(nil, s, alone, 3); len(got) < min(3, len(rows)) || !slices.Equal(got, rows[:len(got)]) {
				t.Errorf("%+v: the first 3 not zero %v of %v", s, got, rows)
			}
		}
	}
}

func BenchmarkFold(b *testing.B) {
	const n = 1 << 20
	for _, width := range []int{1, 16} {
		s := Shape{Rows: n / width, Width: width, Elem: 4}
		for _, absent := range []Absent{Keep, Zero} {
			for _, share := range []float64{0.001, 0.01, 0.05, 0.1, 0.25, 0.5, 1} {
				b.Run(fmt.Sprintf("absent=%d/width=%d/density=%v", absent, width, share), func(b *testing.B) {
					r := rand.New(rand.NewPCG(1, 1))
					us := make([]Update, 3)
					for i := range us {
						rows := some(r, s, share)
						data := integers(r, s, rows)
						m, kind := message(s, data, rows, nil)
						if err := us[i].Decode(kind, m, s, 1, 0); err != nil {
							b.Fatal(err)
						}
					}
					own := zeroed(s.Bytes())
					var f Folder
					for b.Loop() {
						f.Fold(Mean, absent, s, own, 1, 1, us)
					}
				})
			}
		}
	}
}

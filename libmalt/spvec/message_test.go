package spvec

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestMessagesComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	kinds := map[Kind]int{}
	for _, s := range shapes {
		for _, share := range []float64{0, 0.01, 0.3, 0.9, 2} {
			for _, oldest := range []int{0, 3} {
				data := integers(r, s, every(s))
				rows := some(r, s, share)
				const seq = 10
				var ages []uint32
				if oldest > 0 && len(rows) > 0 {
					for range rows {
						ages = append(ages, uint32(r.IntN(oldest)))
					}
				}
				m, kind := message(s, data, rows, ages)
				kinds[kind]++
				for read := uint64(seq - 4); read < seq; read++ {
					var u Update
					if err := u.Decode(kind, m, s, seq, read); err != nil {
						t.Fatalf("%+v, %d rows, %s: %v", s, len(rows), kind, err)
					}
					var want []uint32
					for i, row := range rows {
						if ages == nil || seq-uint64(ages[i]) > read {
							want = append(want, row)
						}
					}
					if got := u.mentioned(s); !slices.Equal(got, want) || u.Len(s) != len(want) {
						t.Fatalf("%+v, %s, read %d: rows %v, want %v", s, kind, read, got, want)
					}
					whole, wantWhole := zeroed(s.Bytes()), zeroed(s.Bytes())
					u.Expand(whole, s)
					var values []byte
					for _, row := range want {
						at := int(row) * s.RowBytes()
						copy(wantWhole[at:at+s.RowBytes()], data[at:])
						values = append(values, data[at:at+s.RowBytes()]...)
					}
					if !bytes.Equal(whole, wantWhole) || !bytes.Equal(u.Values(new([]byte), s), values) {
						t.Fatalf("%+v, %s, read %d: other values", s, kind, read)
					}
				}
			}
		}
	}
	for k := Dense; k <= AgedDense; k++ {
		if kinds[k] == 0 {
			t.Errorf("no message was of kind %s: %v", k, kinds)
		}
	}
}

// TestNewIsEncodeAndRemember in one, whatever the rows.
func TestNewIsEncodeAndRemember(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, s := range shapes {
		for _, share := range []float64{0, 0.1, 0.6, 2} {
			rows := some(r, s, share)
			data, base := integers(r, s, every(s)), integers(r, s, every(s))
			want, kind := message(s, data, rows, nil)
			wantBase := zeroed(s.Bytes())
			copy(wantBase, base)
			Remember(s, wantBase, data, rows)
			got := zeroed(s.MaxBytes())
			n, k := EncodeNew(got, s, data, base, rows)
			if k != kind || !bytes.Equal(got[:n], want) || !bytes.Equal(base[:s.Bytes()], wantBase[:s.Bytes()]) {
				t.Fatalf("%+v, %d rows: %s of %d bytes, want %s of %d, or other contents", s, len(rows), k, n, kind, len(want))
			}
			if changed := Changed(nil, s, data, base); slices.ContainsFunc(changed, func(row uint32) bool { return slices.Contains(rows, row) }) {
				t.Fatalf("%+v: of rows %v %v still differ", s, rows, changed)
			}
		}
	}
}

// TestShorterKind: no message is longer than MaxBytes, and rows of many ages go
// as a whole vector where that is shorter.
func TestShorterKind(t *testing.T) {
	s := Shape{Rows: 1000, Width: 1, Elem: 4}
	r := rand.New(rand.NewPCG(3, 4))
	data := integers(r, s, every(s))
	ages := make([]uint32, s.Rows)
	ages[0] = 1
	if m, kind := message(s, data, every(s), ages); kind != AgedDense || len(m) != s.MaxBytes() {
		t.Errorf("all rows of two ages: %s of %d bytes, want %s of %d", kind, len(m), AgedDense, s.MaxBytes())
	}
	if m, kind := message(s, data, every(s), nil); kind != Dense || len(m) != s.Bytes() {
		t.Errorf("all rows of age 0: %s of %d bytes, want %s of %d", kind, len(m), Dense, s.Bytes())
	}
	if m, kind := message(s, data, []uint32{5}, nil); kind != Rows || len(m) != 8+8+4 {
		t.Errorf("one row: %s of %d bytes, want %s of 20", kind, len(m), Rows)
	}
}

func TestDecodeRefuses(t *testing.T) {
	s := Shape{Rows: 10, Width: 1, Elem: 4}
	data := zeroed(s.Bytes())
	good, kind := message(s, data, []uint32{2, 5, 9}, nil)
	aged, agedKind := message(s, data, []uint32{2, 5}, []uint32{0, 1})
	oldest, _ := message(s, data, []uint32{2}, []uint32{7})
	all := every(s)
	dense, denseKind := message(s, data, all, []uint32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	if kind != Rows || agedKind != Aged || denseKind != AgedDense {
		t.Fatalf("kinds %s, %s, %s", kind, agedKind, denseKind)
	}
	with := func(b []byte, at int, x byte) []byte {
		c := zeroed(len(b))
		copy(c, b)
		c[at] = x
		return c
	}
	for what, c := range map[string]struct {
		kind Kind
		b    []byte
		want string
	}{
		"nothing":              {Rows, nil, "in 0 bytes"},
		"no such kind":         {9, good, "kind 9"},
		"whole, too short":     {Dense, good, "all 10 rows"},
		"too many rows":        {Rows, with(good, 0, 11), "11 of a vector of 10"},
		"far too many rows":    {Rows, with(good, 7, 255), "of a vector of 10"},
		"longer than it says":  {Rows, with(good, 0, 1), "expected"},
		"shorter than it says": {Rows, good[:len(good)-1], "expected"},
		"row out of range":     {Rows, with(good, 16, 10), "row 10 of a vector of 10"},
		"descending":           {Rows, with(good, 12, 1), "row 1 stands behind row 2"},
		"twice":                {Rows, with(good, 12, 2), "row 2 stands behind row 2"},
		"aged as rows":         {Rows, aged, "expected"},
		"rows as aged":         {Aged, good, "expected"},
		"too old":              {Aged, oldest, "age 7 in message 7"},
		"too old, dense":       {AgedDense, dense, "age 7 in message 7"},
	} {
		u := Update{Index: []uint32{1}}
		err := u.Decode(c.kind, c.b, s, 7, 0)
		if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", what, err, c.want)
		}
	}
}

func TestShapeRefuses(t *testing.T) {
	for _, s := range []Shape{{1, 1, 2}, {1, 0, 4}, {-1, 1, 4}, {1 << 32, 1, 8}} {
		if s.Check() == nil {
			t.Errorf("%+v is not refused", s)
		}
	}
	for _, s := range shapes {
		if err := s.Check(); err != nil {
			t.Errorf("%+v: %v", s, err)
		}
	}
}

// FuzzDecode: no message reads or folds out of bounds, and what is accepted is
// rows of the vector, ascending.
func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(5, 6))
	for i, s := range shapes[:8] {
		rows := some(r, s, 0.3)
		m, kind := message(s, integers(r, s, rows), rows, nil)
		f.Add(uint16(kind), uint8(i), uint64(3), m)
		m, kind = message(s, integers(r, s, rows), rows, slices.Repeat([]uint32{1}, len(rows)))
		f.Add(uint16(kind), uint8(i), uint64(3), m)
	}
	f.Fuzz(func(t *testing.T, kind uint16, shape uint8, read uint64, m []byte) {
		s := shapes[int(shape)%len(shapes)]
		aligned := zeroed(len(m))
		copy(aligned, m)
		var u Update
		if err := u.Decode(Kind(kind), aligned, s, read+2, read); err != nil {
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("%v is not ErrCorrupt", err)
			}
			return
		}
		own := zeroed(s.Bytes())
		if !u.All {
			for i, row := range u.Index {
				if int(row) >= s.Rows || i > 0 && row <= u.Index[i-1] {
					t.Fatalf("rows %v of %d", u.Index, s.Rows)
				}
			}
		}
		if got := len(u.Values(new([]byte), s)); got != u.Len(s)*s.RowBytes() {
			t.Fatalf("%d bytes of %d rows", got, u.Len(s))
		}
		var folder Folder
		folder.Fold(Mean, Keep, s, own, 1, 1, []Update{u})
		folder.Fold(Sum, Zero, s, own, 0, 1, []Update{u, u})
	})
}

package reduce

import (
	"encoding/binary"
	"math"
	"testing"
)

// Elements that are alike in all arrays stay, though their mean by the kernels is another
// number; the others become the mean, with the kernels' bits.
func TestFoldUnlike(t *testing.T) {
	const n, ranks = 1000, 3
	runs := []Run{{Float32, 0, 4 * n}, {Float64, 4 * n, 8 * n}}
	arrays, want := make([][]byte, ranks), make([]byte, 12*n)
	alike := func(i int) bool { return i%7 < 4 }
	for r := range arrays {
		arrays[r] = make([]byte, 12*n)
		for i := range n {
			x := 0.1 + float64(i)
			if !alike(i) {
				x += float64(r)
			}
			binary.LittleEndian.PutUint32(arrays[r][4*i:], math.Float32bits(float32(x)))
			binary.LittleEndian.PutUint64(arrays[r][4*n+8*i:], math.Float64bits(x))
		}
	}
	FoldRuns(Mean, runs, 0, want, arrays, nil, 0)
	other := 0
	for i := range n {
		for _, e := range [][2]int{{4 * i, 4}, {4*n + 8*i, 8}} {
			mean, first := want[e[0]:e[0]+e[1]], arrays[0][e[0]:e[0]+e[1]]
			if alike(i) && string(mean) != string(first) {
				other++
				copy(mean, first)
			}
		}
	}
	if other == 0 {
		t.Fatal("no mean of equal numbers is another number: this test shows nothing")
	}
	cut := make([][]byte, ranks)
	for off := 0; off < len(want); off += 1600 { // over the end of the first run, too
		for r := range cut {
			cut[r] = arrays[r][off:min(off+1600, len(want))]
		}
		FoldUnlike(Mean, runs, off, cut, nil)
	}
	for r := range arrays {
		if string(arrays[r]) != string(want) {
			t.Errorf("array %d is another", r)
		}
	}
}

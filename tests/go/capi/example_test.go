package capi

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
)

// TestExample builds examples/c with plain cc and trains with 1, 2 and 3 ranks:
// each sees its share of the rows, all end with the same bits, and those are the
// model that made the data.
func TestExample(t *testing.T) {
	program := compile(t, filepath.Join(root(t), "examples", "c", "regress.c"), "-O2")
	for _, size := range []int{1, 2, 3} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			rows, result := 0, ""
			for rank, line := range launch(t, size, program, nil, nil).wait(t) {
				who, rest, _ := strings.Cut(line, ": ")
				if want := fmt.Sprintf("rank %d of %d", rank, size); who != want {
					t.Fatalf("%q, want %q", line, want)
				}
				var seen int
				if n, err := fmt.Sscanf(rest, "%d rows,", &seen); n != 1 {
					t.Fatalf("%q: %v", rest, err)
				}
				rows += seen
				_, model, _ := strings.Cut(rest, "rows, ")
				if rank > 0 && model != result {
					t.Errorf("rank %d has %q, rank 0 %q", rank, model, result)
				}
				result = model
			}
			if rows != 30001 {
				t.Errorf("the ranks saw %d rows, want each of 30001 once", rows)
			}
			var loss float64
			w := make([]float64, 8)
			if n, err := fmt.Sscanf(result, "loss %f, w %g %g %g %g %g %g %g %g",
				&loss, &w[0], &w[1], &w[2], &w[3], &w[4], &w[5], &w[6], &w[7]); n != 9 {
				t.Fatalf("%q: %v", result, err)
			}
			if loss > 1e-4 {
				t.Errorf("loss %v: the noise alone is 3.3e-5", loss)
			}
			for k, x := range w {
				if math.Abs(x-float64(k+1)) > 0.01 {
					t.Errorf("w[%d] = %v, want %d", k, x, k+1)
				}
			}
		})
	}
}

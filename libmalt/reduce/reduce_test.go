package reduce

import (
	"strings"
	"testing"
)

func TestNames(t *testing.T) {
	for _, op := range allOps {
		if got, err := ParseOp(op.String()); got != op || err != nil {
			t.Errorf("ParseOp(%q) is %v, %v", op, got, err)
		}
	}
	if Float32.Size() != 4 || Float64.Size() != 8 || DType(0).Size() != 0 {
		t.Errorf("sizes are %d, %d and %d, want 4, 8 and 0", Float32.Size(), Float64.Size(), DType(0).Size())
	}
	if Op(0).String() != "Op(0)" || DType(9).String() != "DType(9)" {
		t.Errorf("invalid values are called %v and %v", Op(0), DType(9))
	}
}

func TestUnknownNamesNameTheNearest(t *testing.T) {
	for _, c := range []struct{ in, nearest string }{
		{"men", "mean"}, {"mean_received", "mean-received"}, {"suum", "sum"}, {"maxi", "max"},
		{"replaced", "replace"}, {"minn", "min"},
	} {
		_, err := ParseOp(c.in)
		if err == nil {
			t.Errorf("ParseOp(%q) is not refused", c.in)
			continue
		}
		for _, want := range []string{`"` + c.in + `"`, "mean, mean-received, sum, min, max, replace", `Did you mean "` + c.nearest + `"?`} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("ParseOp(%q): %q does not say %q", c.in, err, want)
			}
		}
	}
	if _, err := ParseOp("product"); err == nil || strings.Contains(err.Error(), "Did you mean") {
		t.Errorf("ParseOp of a word far from all: %v", err)
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name string
		has  path
		want path
	}{
		{"", pathAVX512, pathAVX512},
		{"", pathGo, pathGo},
		{"go", pathAVX512, pathGo},
		{"avx2", pathAVX512, pathAVX2},
		{"avx512", pathAVX2, pathAVX2}, // what is not there cannot run
		{"avx512", pathGo, pathGo},
		{"AVX2", pathAVX2, pathAVX2},
		{"sse", pathAVX512, pathAVX512},
	} {
		if got := choose(c.name, c.has); got != c.want {
			t.Errorf("choose(%q) on a machine with %v is %v", c.name, c.has, got)
		}
	}
}

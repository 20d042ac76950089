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
	for _, dt := range allDTypes {
		if got, err := ParseDType(dt.String()); got != dt || err != nil {
			t.Errorf("ParseDType(%q) is %v, %v", dt, got, err)
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
	if _, err := ParseDType("float23"); err == nil || !strings.Contains(err.Error(), `Did you mean "float32"?`) {
		t.Errorf("ParseDType: %v", err)
	}
}

func TestChoose(t *testing.T) {
	for _, c := range []struct {
		name string
		has  path
		want path
		ok   bool
	}{
		{"", pathAVX512, pathAVX512, true},
		{"", pathGo, pathGo, true},
		{"go", pathAVX512, pathGo, true},
		{"avx2", pathAVX512, pathAVX2, true},
		{"avx512", pathAVX2, pathAVX2, true}, // what is not there cannot run
		{"avx512", pathGo, pathGo, true},
		{"AVX2", pathAVX2, pathAVX2, false},
		{"sse", pathAVX512, pathAVX512, false},
	} {
		got, err := choose(c.name, c.has)
		if got != c.want || (err == nil) != c.ok {
			t.Errorf("choose(%q) on a machine with %v is %v, %v", c.name, c.has, got, err)
		}
	}
	err := CheckPath("fast")
	if err == nil || !strings.Contains(err.Error(), `"fast"`) || !strings.Contains(err.Error(), "go, avx2, avx512") {
		t.Errorf("CheckPath: %v", err)
	}
	if err := CheckPath(Path()); err != nil {
		t.Errorf("the name of the path in use is refused: %v", err)
	}
}

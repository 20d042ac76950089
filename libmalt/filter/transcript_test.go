package filter

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"malt/internal/transcripttest"
	"malt/libmalt/spvec"
)

// TestTranscript replays what filters decide on the first rows of four, of one element each:
//
//	> dvf:1 at 4 late: 0.5 1    at clock 4, where a receiver is late, rows 0 and 1 are so far
//
// as Measure measures it, which is the square for dvf-l2.
func TestTranscript(t *testing.T) {
	transcripttest.Play(t, "testdata/filters.txt", func(to *strings.Builder, question string) {
		said, distances, _ := strings.Cut(question, ":")
		head, rest, _ := strings.Cut(distances, ": ")
		words := strings.Fields(said + ":" + head)
		f, err := Parse(words[0])
		if err != nil {
			t.Fatal(err)
		}
		clock, err := strconv.ParseUint(words[2], 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		var rows []uint32
		var far []float64
		for i, word := range strings.Fields(rest) {
			x, err := strconv.ParseFloat(word, 64)
			if err != nil {
				t.Fatal(err)
			}
			rows, far = append(rows, uint32(i)), append(far, x)
		}
		if !f.On() {
			fmt.Fprintln(to, "all go")
			return
		}
		late := len(words) > 3 && words[3] == "late"
		fmt.Fprintln(to, "rows", f.Due(rows, far, spvec.Shape{Rows: 4, Width: 1, Elem: 8}, clock, late), "go")
	})
}

package graphs

import (
	"strings"
	"testing"
)

// FuzzParse: whatever is written, Parse refuses it with a sentence of this
// package or makes a graph that is sound, has a canonical name and can be
// measured and drawn.
func FuzzParse(f *testing.F) {
	for size := range 9 {
		for _, spec := range specs(max(1, size)) {
			f.Add(spec, size)
		}
	}
	for _, spec := range []string{"", ":", "random:", "random:3:18446744073709551616", "lists:0", "lists:1,1/0", "lists:/,/", "halton:", "Halton", "one_peer"} {
		f.Add(spec, 4)
	}
	f.Fuzz(func(t *testing.T, spec string, size int) {
		if size > 64 && size <= MaxSize {
			size %= 64 // larger ones are only slower
		}
		g, err := Parse(spec, size)
		if err != nil {
			if g != nil || strings.Count(err.Error(), "\n") > 2 || len(err.Error()) > 300 {
				t.Fatalf("Parse(%q, %d) = %v, %v", spec, size, g, err)
			}
			return
		}
		checkNeighbours(t, spec, size, g.AllReceivers, g.AllSenders)
		checkSpec(t, g)
		if size <= 16 {
			checkAgainstTwin(t, g)
			svgElements(t, g.SVG())
		}
	})
}

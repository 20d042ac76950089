package graphs

import (
	"encoding/xml"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"gonum.org/v1/gonum/graph"
	"gonum.org/v1/gonum/graph/encoding/dot"
	"gonum.org/v1/gonum/graph/simple"
	"gonum.org/v1/gonum/graph/topo"
)

func TestGoldenDrawings(t *testing.T) {
	for _, c := range []struct {
		spec string
		size int
		file string
	}{
		{"halton", 4, "halton-4"}, {"halton-paper", 8, "halton-paper-8"}, {"one-peer", 6, "one-peer-6"}, {"star", 12, "star-12"},
	} {
		g := parse(t, c.spec, c.size)
		golden(t, c.file+".txt", g.Text())
		golden(t, c.file+".dot", g.DOT())
		golden(t, c.file+".svg", g.SVG())
	}
	for _, size := range []int{1, 24, 40, 100} {
		golden(t, fmt.Sprintf("halton-%d.txt", size), parse(t, "halton", size).Text())
	}
	golden(t, "one-way.txt", parse(t, "lists:1/2/1", 3).Text())
	golden(t, "one-way.svg", parse(t, "lists:1/2/1", 3).SVG())
}

func TestTextFitsATerminal(t *testing.T) {
	for _, size := range []int{1, 2, 8, 9, 10, 11, 16, 17, 32, 33, 64, 65, 200} {
		for _, spec := range specs(size) {
			lines := strings.Split(parse(t, spec, size).Text(), "\n")
			for _, line := range lines {
				if wide := utf8.RuneCountInString(line); wide > 80 || strings.HasSuffix(line, " ") {
					t.Errorf("%s of %d: a line is %d wide: %q", spec, size, wide, line)
				}
			}
			if size <= maxMatrix {
				edges := strings.Count(strings.Join(lines, ""), "●")
				if want := parse(t, spec, size).arrows(); edges != want {
					t.Errorf("%s of %d: %d dots for %d edges", spec, size, edges, want)
				}
			}
		}
	}
}

// DOT is read back by an independent parser.
func TestDOTIsTheGraph(t *testing.T) {
	for size := 1; size <= 17; size++ {
		for _, spec := range specs(size) {
			g := parse(t, spec, size)
			read := dotGraph{simple.NewDirectedGraph()}
			if err := dot.Unmarshal([]byte(g.DOT()), read); err != nil {
				t.Fatalf("%s of %d: %v in\n%s", spec, size, err, g.DOT())
			}
			want := simple.NewDirectedGraph()
			for rank := range size {
				want.AddNode(simple.Node(rank))
			}
			for from := range size {
				for _, to := range g.AllReceivers(from) {
					want.SetEdge(simple.Edge{F: simple.Node(from), T: simple.Node(to)})
				}
			}
			if !topo.Equal(read, want) {
				t.Fatalf("%s of %d: DOT is another graph:\n%s", spec, size, g.DOT())
			}
		}
	}
}

// dotGraph lets nodes take the number that DOT calls them.
type dotGraph struct{ *simple.DirectedGraph }

func (d dotGraph) NewNode() graph.Node { return new(dotNode) }

type dotNode int64

func (n *dotNode) ID() int64 { return int64(*n) }

func (n *dotNode) SetDOTID(id string) {
	rank, err := strconv.ParseInt(id, 10, 64)
	if err != nil {
		rank = -1
	}
	*n = dotNode(rank)
}

// svgElements counts the elements of a well-formed SVG and checks that all
// places lie on the canvas.
func svgElements(t *testing.T, text string) map[string]int {
	t.Helper()
	n := make(map[string]int)
	var width, height float64
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		token, err := d.Token()
		if err == io.EOF {
			return n
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
		start, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		n[start.Name.Local]++
		for _, a := range start.Attr {
			if a.Name.Local == "d" {
				n["curve"] += strings.Count(a.Value, "Q")
				n["head"] += strings.Count(a.Value, "Z")
			}
		}
		for _, a := range start.Attr {
			v, err := strconv.ParseFloat(a.Value, 64)
			switch {
			case a.Name.Local == "d" && (strings.Contains(a.Value, "NaN") || strings.Contains(a.Value, "Inf")):
				t.Fatalf("path %s", a.Value)
			case start.Name.Local == "svg" && a.Name.Local == "width":
				width = v
			case start.Name.Local == "svg" && a.Name.Local == "height":
				height = v
			case a.Name.Local == "cx" || a.Name.Local == "x":
				if err != nil || math.IsNaN(v) || v < 0 || v > width {
					t.Fatalf("%s at x %s of %v", start.Name.Local, a.Value, width)
				}
			case a.Name.Local == "cy" || a.Name.Local == "y":
				if err != nil || math.IsNaN(v) || v < 0 || v > height {
					t.Fatalf("%s at y %s of %v", start.Name.Local, a.Value, height)
				}
			}
		}
	}
}

func TestSVGShowsEveryRankAndEdge(t *testing.T) {
	for _, size := range []int{1, 2, 3, 4, 5, 8, 16, 64, 65, 101} {
		for _, spec := range specs(size) {
			g := parse(t, spec, size)
			n := svgElements(t, g.SVG())
			edges := g.arrows()
			if edges > maxDrawn {
				edges = len(g.AllReceivers(0))
			}
			if n["circle"] != size || n["curve"] != edges || n["head"] != edges {
				t.Errorf("%s of %d: %d circles, %d curves and %d heads, want %d and %d arrows", spec, size, n["circle"], n["curve"], n["head"], size, edges)
			}
		}
	}
}

// Drawing a graph that is too large to draw whole stays small and says so.
func TestHugeDrawings(t *testing.T) {
	g := parse(t, "all", 4096)
	for format, says := range map[string]string{"text": "and so on to rank 4095", "dot": "only the edges of rank 0", "svg": "only rank 0's edges are drawn, of 16773120"} {
		text, err := g.Render(format)
		if err != nil || !strings.Contains(text, says) || len(text) > 1<<20 {
			t.Errorf("%s: %d bytes, error %v; want less than 1 MB that say %q", format, len(text), err, says)
		}
	}
	if text := parse(t, "star", MaxMeasured+1).Text(); !strings.Contains(text, "too large to measure") {
		t.Error(text)
	}
}

func TestRender(t *testing.T) {
	g := parse(t, "ring", 3)
	for format, want := range map[string]string{"spec": g.String(), "text": g.Text(), "dot": g.DOT(), "svg": g.SVG()} {
		if got, err := g.Render(format); err != nil || got != want {
			t.Errorf("%s: %q, %v", format, got, err)
		}
	}
	_, err := g.Render("png")
	wantError(t, err, `"png"`, "spec, text, dot, svg")
}

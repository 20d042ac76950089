package graphs

import (
	"fmt"
	"math"
	"strings"
)

// The drawing is a square with a circle of ranks, rank 0 at the top and the
// others clockwise, between a title and a caption.
const (
	svgWidth   = 640.0
	svgTop     = 72.0  // height of the title
	svgCircle  = 256.0 // radius of the circle of ranks
	svgMargin  = 44.0  // between that circle and the title or caption
	svgLine    = 22.0  // height of a line of the caption
	svgLabels  = 100   // most ranks whose numbers fit into their discs
	maxDrawn   = 4200  // most edges that are drawn: all of 64 ranks
	inkEdge    = "#94a3b8"
	inkText    = "#0f172a"
	inkSoft    = "#475569"
	inkRank    = "#334155"
	inkZero    = "#c2410c" // rank 0 and its edges
	inkWarning = "#b91c1c"
)

// SVG draws the ranks on a circle with an arrow for each edge, rank 0's edges
// brought out, and the measures below. Edges that a graph does not use at clock
// 1 are dashed. Groups of a graph that is not connected differ in colour. Of
// more than 4,200 edges only rank 0's are drawn, and the caption says so.
func (g *Graph) SVG() string {
	type line struct{ text, ink string }
	var lines []line
	for _, text := range g.caption() {
		lines = append(lines, line{text, inkSoft})
	}
	if zero := g.AllReceivers(0); len(zero) > 0 {
		lines = append(lines, line{"rank 0 sends to " + phrase(zero, "", ", ") + g.turns(), inkZero})
	}
	if g.arrows() > maxDrawn {
		lines = append(lines, line{fmt.Sprintf("only rank 0's edges are drawn, of %d", g.arrows()), inkSoft})
	}
	if e := g.disconnected(); e != nil {
		lines = append(lines, line{"not strongly connected: " + e.short(), inkWarning})
	}
	y := svgTop + 2*(svgCircle+svgMargin) + 16 // of the first line of the caption
	height := y + float64(len(lines))*svgLine
	d := &drawing{g: g, radius: discRadius(g.size)}
	d.printf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %.0f %.0f" width="%.0f" height="%.0f" role="img" font-family="Helvetica, Arial, sans-serif" text-anchor="middle">`+"\n",
		svgWidth, height, svgWidth, height)
	d.printf("<title>%s</title>\n", g.title())
	d.printf(`<rect width="%.0f" height="%.0f" fill="#ffffff"/>`+"\n", svgWidth, height)
	d.printf(`<text x="%.0f" y="46" font-size="24" font-weight="bold" fill="%s">%s</text>`+"\n", svgWidth/2, inkText, g.title())
	d.edges()
	d.ranks()
	for _, l := range lines {
		d.printf(`<text x="%.0f" y="%.0f" font-size="15" fill="%s">%s</text>`+"\n", svgWidth/2, y, l.ink, l.text)
		y += svgLine
	}
	d.printf("</svg>\n")
	return d.String()
}

// drawing is the text of an SVG while it grows. Everything that goes into it is
// made of numbers and of the words of this package, so nothing is escaped.
type drawing struct {
	strings.Builder
	g      *Graph
	radius float64 // of a rank's disc
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(d, format, args...) }

// discRadius lets neighbouring discs keep a gap of half a disc.
func discRadius(size int) float64 {
	return min(24, 2*math.Pi*svgCircle/float64(size)*0.37)
}

type point struct{ x, y float64 }

func (p point) plus(q point) point    { return point{p.x + q.x, p.y + q.y} }
func (p point) minus(q point) point   { return point{p.x - q.x, p.y - q.y} }
func (p point) times(f float64) point { return point{p.x * f, p.y * f} }
func (p point) length() float64       { return math.Hypot(p.x, p.y) }
func (p point) toward(q point, f float64) point {
	v := q.minus(p)
	return p.plus(v.times(f / v.length()))
}

func (d *drawing) place(rank int, radius float64) point {
	angle := 2 * math.Pi * float64(rank) / float64(d.g.size)
	return point{svgWidth/2 + radius*math.Sin(angle), svgTop + svgMargin + svgCircle - radius*math.Cos(angle)}
}

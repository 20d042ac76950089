package graphs

import (
	"math"
	"slices"
)

// edges draws all edges in grey and then rank 0's over them.
func (d *drawing) edges() {
	n := float64(d.g.arrows())
	width := clamp(14/math.Sqrt(n), 0.35, 1.6)
	opacity := clamp(8/math.Sqrt(n), 0.22, 0.9)
	head := clamp(0.55*d.radius, 3.5, 12)
	d.marker("edge", inkEdge, 0.8*head)
	d.marker("zero", inkZero, head)
	if d.g.arrows() <= maxDrawn {
		d.printf(`<g fill="none" stroke="%s" stroke-width="%.2f" opacity="%.2f">`+"\n", inkEdge, width, opacity)
		for from := 1; from < d.g.size; from++ {
			d.edgesOf(from, "edge")
		}
		d.printf("</g>\n")
	}
	d.printf(`<g fill="none" stroke="%s" stroke-width="%.2f">`+"\n", inkZero, max(width, 1.2))
	d.edgesOf(0, "zero")
	d.printf("</g>\n")
}

// marker defines an arrowhead. Its name holds what it depends on, since
// drawings that share a page share their names.
func (d *drawing) marker(id, ink string, size float64) {
	d.printf(`<marker id="%s-%d" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="%.1f" markerHeight="%.1f" markerUnits="userSpaceOnUse" orient="auto"><path d="M0 1L10 5L0 9L2 5Z" fill="%s"/></marker>`+"\n",
		id, d.g.size, size, size, ink)
}

func (d *drawing) edgesOf(from int, marker string) {
	first := d.g.Receivers(from, 1)
	for _, to := range d.g.AllReceivers(from) {
		dash := ""
		if !slices.Contains(first, to) {
			dash = ` stroke-dasharray="5 4"`
		}
		a, control, b := d.curve(from, to)
		d.printf(`<path d="M%.1f %.1fQ%.1f %.1f %.1f %.1f"%s marker-end="url(#%s-%d)"/>`+"\n",
			a.x, a.y, control.x, control.y, b.x, b.y, dash, marker, d.g.size)
	}
}

// curve returns the ends, at the rims of the discs, and the control point of an
// edge. It bends inwards, to pass other ranks' discs, and a little to its own
// right, to keep off the edge that goes the other way.
func (d *drawing) curve(from, to int) (a, control, b point) {
	a, b = d.place(from, svgCircle), d.place(to, svgCircle)
	middle := a.plus(b).times(0.5)
	centre := point{svgWidth / 2, svgTop + svgMargin + svgCircle}
	length := b.minus(a).length()
	control = middle
	if inwards := centre.minus(middle); inwards.length() > 1 {
		control = middle.toward(centre, min(0.35*inwards.length(), 0.5*length))
	}
	right := point{a.y - b.y, b.x - a.x}
	control = control.plus(right.times(0.07))
	return a.toward(control, d.radius), control, b.toward(control, d.radius+1.5)
}

// ranks draws the discs, one colour per group if the graph is not connected.
func (d *drawing) ranks() {
	group := make([]int, d.g.size)
	parts := d.g.components()
	for i, part := range parts {
		for _, rank := range part {
			group[rank] = i
		}
	}
	font := clamp(0.95*d.radius, 7, 17)
	d.printf(`<g font-size="%.1f">`+"\n", font)
	for rank := range d.g.size {
		p := d.place(rank, svgCircle)
		fill := groupInk(group[rank])
		if len(parts) == 1 && rank == 0 {
			fill = inkZero
		}
		d.printf(`<circle cx="%.1f" cy="%.1f" r="%.1f" fill="%s"/>`, p.x, p.y, d.radius, fill)
		if d.g.size <= svgLabels {
			d.printf(`<text x="%.1f" y="%.1f" fill="#ffffff">%d</text>`, p.x, p.y+0.36*font, rank)
		}
		d.printf("\n")
	}
	d.printf("</g>\n")
}

// groupInk gives the first groups a colour each, told apart in every common
// kind of colour vision, and starts again after the last.
func groupInk(group int) string {
	inks := [...]string{inkRank, "#0072b2", "#009e73", "#b45309", "#a21caf", "#7c2d12"}
	return inks[group%len(inks)]
}

func clamp(v, low, high float64) float64 { return max(low, min(high, v)) }

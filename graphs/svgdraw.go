package graphs

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// edges draws all edges in grey and then rank 0's over them.
func (d *drawing) edges() {
	n := float64(d.g.arrows())
	width := clamp(14/math.Sqrt(n), 0.35, 1.6)
	opacity := clamp(8/math.Sqrt(n), 0.22, 0.9)
	if d.g.arrows() <= maxDrawn {
		d.edgesOf(1, d.g.size, inkEdge, width, opacity)
	}
	d.edgesOf(0, 1, inkZero, max(width, 1.3), 1)
}

// edgesOf draws the edges of the senders from first up to end. Arrowheads are
// shapes of their own, all in one path: not every program that shows SVG turns
// the ends of curved lines (markers) the right way.
func (d *drawing) edgesOf(first, end int, ink string, width, opacity float64) {
	var heads strings.Builder
	d.printf(`<g fill="none" stroke="%s" stroke-width="%.2f" opacity="%.2f">`+"\n", ink, width, opacity)
	for from := first; from < end; from++ {
		now := d.g.Receivers(from, 1)
		for _, to := range d.g.AllReceivers(from) {
			dash := ""
			if !slices.Contains(now, to) {
				dash = ` stroke-dasharray="5 4"`
			}
			a, control, tip := d.curve(from, to)
			length := clamp(0.55*d.radius, 3.5, 11) * (0.75 + width/4)
			b := tip.toward(control, 0.7*length) // under the head, lest the line show beside its tip
			d.printf(`<path d="M%.1f %.1fQ%.1f %.1f %.1f %.1f"%s/>`+"\n", a.x, a.y, control.x, control.y, b.x, b.y, dash)
			addHead(&heads, tip, control, length)
		}
	}
	d.printf("</g>\n")
	if heads.Len() > 0 {
		d.printf(`<path fill="%s" opacity="%.2f" d="%s"/>`+"\n", ink, opacity, heads.String())
	}
}

// addHead adds an arrowhead that comes from a point.
func addHead(b *strings.Builder, tip, from point, length float64) {
	back := tip.toward(from, length).minus(tip)
	side := point{-back.y, back.x}.times(0.36)
	left, notch, right := tip.plus(back).plus(side), tip.plus(back.times(0.75)), tip.plus(back).minus(side)
	fmt.Fprintf(b, "M%.1f %.1fL%.1f %.1fL%.1f %.1fL%.1f %.1fZ", tip.x, tip.y, left.x, left.y, notch.x, notch.y, right.x, right.y)
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
	return a.toward(control, d.radius), control, b.toward(control, d.radius+1)
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

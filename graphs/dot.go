package graphs

import (
	"fmt"
	"strings"
)

// maxWritten is the largest number of edges that DOT writes.
const maxWritten = 1 << 20

// DOT writes the graph in Graphviz's language, one statement per edge in the
// graph's order. Edges of a graph that varies are labelled with the first clock
// that uses them. Of more than a million edges only rank 0's are written, and a
// comment says so.
func (g *Graph) DOT() string {
	var b strings.Builder
	lines := append([]string{g.title()}, g.caption()...)
	if e := g.disconnected(); e != nil {
		lines = append(lines, "not strongly connected: "+e.short())
	}
	fmt.Fprintf(&b, "digraph {\n\tlayout=circo; label=%q;\n\tnode [shape=circle];\n", strings.Join(lines, "\n"))
	senders := g.size
	if g.arrows() > maxWritten {
		senders = 1
		fmt.Fprintf(&b, "\t// only the edges of rank 0, since %d are too many\n", g.arrows())
	}
	for rank := range g.size {
		fmt.Fprintf(&b, "\t%d;\n", rank)
	}
	for from := range senders {
		for i, to := range g.AllReceivers(from) {
			label := ""
			if g.Varies() {
				label = fmt.Sprintf(" [label=%d]", i+1)
			}
			fmt.Fprintf(&b, "\t%d -> %d%s;\n", from, to, label)
		}
	}
	b.WriteString("}\n")
	return b.String()
}

// arrows counts the edges of all clocks.
func (g *Graph) arrows() int {
	if g.receivers == nil {
		return g.size * len(g.offsets)
	}
	n := 0
	for _, list := range g.receivers {
		n += len(list)
	}
	return n
}

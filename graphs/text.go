package graphs

import (
	"fmt"
	"strings"
)

const (
	maxListed = 16 // ranks of a matrix that has room for lists beside it
	maxWide   = 32 // ranks of a matrix with blanks between its columns
	maxMatrix = 64 // ranks of any matrix
)

// Text draws the graph for a terminal: its measures, and up to 64 ranks a
// matrix with a row for each sender and a column for each receiver, 80 columns
// wide at most. Larger graphs show the lists of the first ranks.
func (g *Graph) Text() string {
	var b strings.Builder
	lines := append([]string{g.title()}, g.caption()...)
	if rule := g.rule(); rule != "" {
		lines = append(lines, rule)
	}
	lines = append(append(lines, g.stagesText()...), g.keepersText()...)
	if e := g.disconnected(); e != nil {
		lines = append(lines, "not strongly connected: "+e.short())
		if e.Deaf < 0 {
			lines = append(lines, strings.ReplaceAll(groups(e.Groups, 4), "} ", "}\n"))
		}
	}
	b.WriteString(strings.Join(lines, "\n") + "\n")
	b.WriteByte('\n')
	if g.size <= maxMatrix {
		g.writeMatrix(&b)
	} else {
		g.writeLists(&b)
	}
	return b.String()
}

func (g *Graph) writeMatrix(b *strings.Builder) {
	gap := " "
	if g.size > maxWide {
		gap = ""
	}
	var tens, units strings.Builder
	for rank := range g.size {
		ten := " "
		if rank%10 == 0 && rank > 0 {
			ten = fmt.Sprint(rank / 10)
		}
		tens.WriteString(gap + ten)
		units.WriteString(gap + fmt.Sprint(rank%10))
	}
	if g.size > 10 {
		b.WriteString(strings.TrimRight("        "+tens.String(), " ") + "\n")
	}
	b.WriteString("     to " + units.String() + "\n")
	for from := range g.size {
		head := "        "
		if from == 0 {
			head = "from    "
		}
		b.WriteString(head[:5] + fmt.Sprintf("%2d ", from))
		to := g.AllReceivers(from)
		row := make([]string, g.size)
		for i := range row {
			row[i] = "·"
		}
		row[from] = `\`
		for _, r := range to {
			row[r] = "●"
		}
		b.WriteString(gap + strings.Join(row, gap))
		if g.size <= maxListed && len(to) > 0 {
			b.WriteString("   " + phrase(to, "", " "))
		}
		b.WriteByte('\n')
	}
}

func (g *Graph) writeLists(b *strings.Builder) {
	const most = 8
	for from := range most {
		fmt.Fprintf(b, "%2d sends to %s\n", from, phrase(g.AllReceivers(from), "", ", ")+g.turns())
	}
	fmt.Fprintf(b, "   and so on to rank %d\n", g.size-1)
}

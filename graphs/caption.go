package graphs

import (
	"fmt"
	"strconv"
	"strings"

	"malt/internal/say"
)

// Phrases that drawings and errors share.

// title names the graph and its size. A long spec is cut to its name.
func (g *Graph) title() string {
	name := g.spec
	if len(name) > 32 {
		name, _, _ = strings.Cut(name, ":")
	}
	return name + ", " + count(g.size, "rank")
}

// caption says the measures: lines for traffic, for mixing and for gradients.
func (g *Graph) caption() []string {
	m, err := g.Measure()
	if err != nil {
		return []string{say.Of(err).What}
	}
	return append([]string{m.traffic(g.Varies())}, m.mixing()...)
}

func (m Measures) traffic(varies bool) string {
	receivers := count(m.DegreeMax, "receiver") + " per rank"
	if m.DegreeMin != m.DegreeMax {
		receivers = fmt.Sprintf("%d to %s", m.DegreeMin, receivers)
	}
	if varies {
		receivers += " and clock"
	}
	line := count(m.Edges, "edge") + ", " + receivers
	if m.Connected && m.Size > 1 {
		line += ", at most " + count(m.Diameter, "hop")
	}
	return line
}

func (m Measures) mixing() []string {
	second := fmt.Sprintf("second eigenvalue %.3f (0 mixes at once, 1 never)", m.SecondEigenvalue)
	smallest := fmt.Sprintf("smallest real part %.3f", m.SmallestRealPart)
	if m.SmallestRealPart < 0 {
		smallest += " (below 0: exchange models, not gradients)"
	}
	return []string{second, smallest}
}

// rule says in one line whom a flat graph sends to; "" for other graphs.
func (g *Graph) rule() string {
	if len(g.offsets) == 0 {
		return ""
	}
	return fmt.Sprintf("rank n sends to %s (mod %d)", phrase(g.offsets, "n+", ", ")+g.turns(), g.size)
}

// turns follows a list of receivers.
func (g *Graph) turns() string {
	if g.Varies() {
		return " in turn"
	}
	return ""
}

// phrase joins numbers, each behind a prefix; a long list ends in a count.
func phrase(numbers []int, prefix, separator string) string {
	const most = 8
	var words []string
	for _, n := range numbers[:min(len(numbers), most)] {
		words = append(words, prefix+strconv.Itoa(n))
	}
	text := strings.Join(words, separator)
	if n := len(numbers) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

func groups(parts [][]int, most int) string {
	var words []string
	for _, part := range parts[:min(len(parts), most)] {
		words = append(words, "{"+phrase(part, "", " ")+"}")
	}
	text := strings.Join(words, " ")
	if n := len(parts) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// quote shows a piece of somebody's text, cut where it stops to be of use.
func quote(text string) string {
	const most, shown = 40, 60 // escapes are longer than what they stand for
	if len(text) > most {
		return say.Brief(strconv.Quote(text[:most]), shown) + "..."
	}
	return say.Brief(strconv.Quote(text), shown)
}

func count(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

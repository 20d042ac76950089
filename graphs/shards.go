package graphs

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"malt/internal/say"
)

// shards joins all ranks with those that keep a part of a sum: the first K, or all. With K/D the
// sum of each part travels through a tree, in which no rank sends it to more than D others. The
// graph has no meaning but for changes: see package shards.
func shards(size int, arg string) (*Graph, error) {
	g := &Graph{size: size, offsets: allOffsets(size), keepers: size, fanout: max(1, size-1)}
	var err error
	keepers, fanout, inTrees := strings.Cut(arg, "/")
	if arg != "" {
		g.keepers, err = numberOf(arg, keepers)
	}
	if err == nil && inTrees {
		g.fanout, err = numberOf(arg, fanout)
	}
	if err != nil {
		return nil, err
	}
	if g.keepers > size {
		return nil, say.Errorf(nil, "graph shards:%s does not fit %s", arg, count(size, "rank")).
			At("%d of them are to keep a part each", g.keepers).Try("Write at most shards:%d, or shards alone: all do.", size)
	}
	if g.keepers < size {
		to := make([]map[int]bool, size)
		for r := range to {
			to[r] = map[int]bool{}
		}
		for q := range g.keepers {
			for r, above := range g.Above(q) {
				if r != q {
					to[r][q], to[above][r] = true, true
				}
			}
		}
		lists := make([][]int, size)
		for from := range lists {
			for r := range size {
				if to[from][r] {
					lists[from] = append(lists[from], r)
				}
			}
		}
		of := fromValid(lists)
		of.keepers, of.fanout = g.keepers, g.fanout
		g = of
	}
	g.spec = "shards"
	if arg != "" {
		g.spec += ":" + arg
	}
	return g, nil
}

// numberOf is a number of the argument of shards.
func numberOf(arg, word string) (int, error) {
	n, err := strconv.Atoi(word)
	if err != nil || n < 1 || n > MaxSize || strconv.Itoa(n) != word {
		return 0, say.Errorf(nil, "graph shards:%s: %s is not a number of ranks", quote(arg), quote(word)).
			Try("Write how many ranks keep a part each, such as shards:2, or also to how many each sends, such as shards:2/3.")
	}
	return n, nil
}

// Keepers is how many ranks keep a part, of the graph shards: the first ones. In other graphs it
// is 0.
func (g *Graph) Keepers() int { return g.keepers }

// Workers tells whether there are ranks without which the others have all that they need: those that
// keep no part, and pass none on.
func (g *Graph) Workers() bool {
	return g.keepers > 0 && g.keepers < g.size && g.fanout >= g.size-1
}

// Above tells by rank from which other one it has the sum of part q, of the graph shards; -1: it
// keeps it. The trees of all parts are the same, but for the order of the ranks, and at their ends
// are the other ranks that keep a part. That order is turned from part to part, so that each rank
// passes on about as much as it receives.
func (g *Graph) Above(q int) []int {
	var order []int
	workers := g.size - g.keepers
	for j := range workers {
		order = append(order, g.keepers+(j+q*workers/g.keepers)%workers)
	}
	for j := 1; j < g.keepers; j++ {
		order = append(order, (q+j)%g.keepers)
	}
	above := make([]int, g.size)
	above[q] = -1
	for place, r := range order {
		if above[r] = q; place >= g.fanout {
			above[r] = order[place/g.fanout-1]
		}
	}
	return above
}

// OfChanges tells whether what a rank sends is to travel further than over one edge, as changes do.
func (g *Graph) OfChanges() bool { return g.InStages() || g.keepers > 0 }

// keepersText says what ranks of shards keep and send.
func (g *Graph) keepersText() (lines []string) {
	if g.keepers == 0 || g.size == 1 {
		return nil
	}
	who := "rank 0 keeps the vector, and adds up the changes of all"
	if g.keepers > 1 {
		who = fmt.Sprintf("ranks 0 to %d keep 1/%d of the vector each, and add up its changes", g.keepers-1, g.keepers)
	}
	lines = append(lines, who)
	if g.fanout >= g.size-1 {
		// A keeper sends its changes of the other parts, and its own part to all others.
		keeper, worker := []int{g.keepers + g.size - 2}, []int{g.keepers}
		return append(lines, g.sentText(keeper, worker[:min(1, g.size-g.keepers)]))
	}
	sent := make([]int, g.size) // parts, by rank
	for q := range g.keepers {
		above := g.Above(q)
		if q < 4 {
			lines = append(lines, treeText(q, above))
		}
		for r := range above {
			if r != q {
				sent[r]++
				sent[above[r]]++
			}
		}
	}
	if g.keepers > 4 {
		lines = append(lines, fmt.Sprintf("and so on to part %d", g.keepers-1))
	}
	return append(lines, g.sentText(sent[:g.keepers], sent[g.keepers:]))
}

// treeText says to whom ranks send the sum of part q.
func treeText(q int, above []int) string {
	const most = 8
	words := []string{fmt.Sprintf("sum of part %d", q)}
	for level := []int{q}; len(level) > 0; {
		var next []int
		for _, from := range level {
			var to []int
			for r := range above {
				if above[r] == from {
					to = append(to, r)
				}
			}
			if len(to) > 0 && len(words) <= most {
				words = append(words, fmt.Sprintf("%d to {%s}", from, phrase(to, "", " ")))
			}
			next = append(next, to...)
		}
		level = next
	}
	return words[0] + ": " + strings.Join(words[1:], ", ")
}

// sentText says how many bytes ranks that keep a part send, and the others, of which these are the
// numbers of parts.
func (g *Graph) sentText(keepers, others []int) string {
	times := func(parts []int) string {
		number := func(parts int) string { return strconv.FormatFloat(float64(parts)/float64(g.keepers), 'g', 3, 64) }
		text, most := number(slices.Min(parts)), number(slices.Max(parts))
		switch {
		case most != text:
			text += " to " + most
		case text == "1":
			return "once"
		}
		return text + " times"
	}
	text := times(keepers) + " the vector"
	if len(others) > 0 {
		text = times(others) + " the vector, of a keeper " + times(keepers)
	}
	return "bytes per sync: " + text + "; on graph all " + count(g.size-1, "time")
}

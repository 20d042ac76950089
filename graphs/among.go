package graphs

import (
	"slices"
	"strconv"
	"strings"
)

// Among is g among those of its ranks that are left, ascending: the others neither send nor
// receive.
//
// A named graph is made again for so many ranks and laid over their order, so that all still
// weigh the same and each can reach each other: random takes fewer receivers where there are
// not so many, and what cannot be made for that number, or would fall apart, becomes chord.
//
// In a graph of lists the neighbours of each rank that is gone, its senders and
// receivers, close a ring over the gap, in ascending order, where an edge is missing.
// So ranks that could reach each other still can, and no rank gets more than one receiver and one
// sender for each that is gone.
func (g *Graph) Among(ranks []int) *Graph {
	if len(ranks) == g.size {
		return g
	}
	name, arg, _ := strings.Cut(g.spec, ":")
	if name == "lists" {
		return g.closeGaps(ranks)
	}
	n := g.remade(name, arg, len(ranks))
	if n.Varies() {
		n.size, n.ranks = g.size, slices.Clone(ranks)
		return n
	}
	lists := make([][]int, g.size)
	for i, rank := range ranks {
		for _, to := range n.AllReceivers(i) {
			lists[rank] = append(lists[rank], ranks[to])
		}
	}
	spec := n.spec
	n = fromValid(lists)
	n.spec = spec
	return n
}

// remade is a graph of that name for size ranks.
func (g *Graph) remade(name, arg string, size int) *Graph {
	n, err := Parse(g.spec, size)
	if _, seed, ok := strings.Cut(arg, ":"); err != nil && name == "random" {
		arg = strconv.Itoa(size - 1)
		if ok {
			arg += ":" + seed
		}
		n, err = random(size, arg)
	}
	if err != nil || n.disconnected() != nil && g.disconnected() == nil {
		n = &Graph{spec: "chord", size: size, offsets: chordOffsets(size)}
	}
	return n
}

// closeGaps is Among of lists.
func (g *Graph) closeGaps(ranks []int) *Graph {
	lists := make([][]int, g.size)
	for rank := range lists {
		lists[rank] = g.AllReceivers(rank)
	}
	for gone := range lists {
		if _, left := slices.BinarySearch(ranks, gone); left {
			continue
		}
		around := slices.Clone(lists[gone])
		for rank, list := range lists {
			if i := slices.Index(list, gone); i >= 0 {
				lists[rank] = slices.Delete(list, i, i+1)
				around = append(around, rank)
			}
		}
		lists[gone] = nil
		slices.Sort(around)
		around = slices.Compact(around)
		for i, rank := range around {
			if to := around[(i+1)%len(around)]; to != rank && !slices.Contains(lists[rank], to) {
				lists[rank] = append(lists[rank], to)
			}
		}
	}
	n := fromValid(lists)
	n.spec = g.spec
	return n
}

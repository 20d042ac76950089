package graphs

import (
	"fmt"
	"strconv"

	"malt/internal/say"
)

// shards joins all ranks with those that keep a part of a sum: the first K, or all. It has no
// meaning but for changes: see package shards.
func shards(size int, arg string) (*Graph, error) {
	keepers, err := keepersOf(size, arg)
	if err != nil {
		return nil, err
	}
	g := &Graph{size: size, offsets: allOffsets(size)}
	if keepers < size {
		lists := make([][]int, size)
		for rank := range lists {
			most := keepers
			if rank < keepers {
				most = size
			}
			for to := range most {
				if to != rank {
					lists[rank] = append(lists[rank], to)
				}
			}
		}
		g = fromValid(lists)
	}
	g.keepers, g.spec = keepers, "shards"
	if arg != "" {
		g.spec += ":" + arg
	}
	return g, nil
}

func keepersOf(size int, arg string) (int, error) {
	if arg == "" {
		return size, nil
	}
	n, err := strconv.Atoi(arg)
	if err != nil || n < 1 || strconv.Itoa(n) != arg {
		return 0, say.Errorf(nil, "graph shards:%s: %s is not a number of ranks", quote(arg), quote(arg)).
			Try("Write how many ranks keep a part each, such as shards:1, or shards alone: all do.")
	}
	if n > size {
		return 0, say.Errorf(nil, "graph shards:%d does not fit %s", n, count(size, "rank")).
			At("%d of them are to keep a part each", n).Try("Write at most shards:%d, or shards alone: all do.", size)
	}
	return n, nil
}

// Keepers is how many ranks keep a part, of the graph shards: the first ones. In other graphs it
// is 0.
func (g *Graph) Keepers() int { return g.keepers }

// OfChanges tells whether what a rank sends is to travel further than over one edge, as changes do.
func (g *Graph) OfChanges() bool { return g.InStages() || g.keepers > 0 }

// keepersText says what ranks of shards keep and send.
func (g *Graph) keepersText() []string {
	if g.keepers == 0 || g.size == 1 {
		return nil
	}
	who := "rank 0 keeps the vector, and adds up the changes of all"
	if g.keepers > 1 {
		who = fmt.Sprintf("ranks 0 to %d keep 1/%d of the vector each, and add up its changes", g.keepers-1, g.keepers)
	}
	// A keeper sends its changes of the other parts, and its own part to all others.
	bytes := strconv.FormatFloat(float64(g.keepers+g.size-2)/float64(g.keepers), 'g', 3, 64) + " times"
	if g.keepers < g.size {
		bytes = "once the vector, of a keeper " + bytes
	} else {
		bytes += " the vector"
	}
	return []string{who, "bytes per sync: " + bytes + "; on graph all " + count(g.size-1, "time")}
}

package graphs

import (
	"slices"
	"strconv"
	"strings"

	"malt/internal/say"
)

// FromLists makes a graph of len(lists) ranks from the receivers of each. Their
// order is kept, and lists is copied. A receiver that is no rank, is the sender
// itself or comes twice is an error.
func FromLists(lists [][]int) (*Graph, error) {
	if err := checkSize(len(lists)); err != nil {
		return nil, err
	}
	own := make([][]int, len(lists))
	seen := make([]int, len(lists)) // by receiver: 1 + the last rank that lists it
	for rank, list := range lists {
		for _, to := range list {
			switch {
			case to < 0 || to >= len(lists):
				return nil, say.Errorf(nil, "graph lists: rank %d sends to rank %d, which does not exist", rank, to).Try("Ranks are 0 to %d.", len(lists)-1)
			case to == rank:
				return nil, say.Errorf(nil, "graph lists: rank %d sends to itself", rank).Try("Leave %d out of its list: its own value is always part of a gather.", rank)
			case seen[to] == rank+1:
				return nil, say.Errorf(nil, "graph lists: rank %d sends to rank %d twice", rank, to).Try("Name each receiver once.")
			}
			seen[to] = rank + 1
		}
		own[rank] = slices.Clone(list)
	}
	g := fromValid(own)
	g.spec = formatLists(own)
	return g, nil
}

// fromValid takes lists that are known to be right, without copying them.
func fromValid(lists [][]int) *Graph {
	senders := make([][]int, len(lists))
	for rank, list := range lists {
		for _, to := range list {
			senders[to] = append(senders[to], rank)
		}
	}
	return &Graph{size: len(lists), receivers: lists, senders: senders}
}

// parseLists reads receivers separated by commas, ranks by slashes.
func parseLists(size int, arg string) (*Graph, error) {
	if n := strings.Count(arg, "/") + 1; n != size {
		return nil, say.Errorf(nil, "graph lists: %d lists for %d ranks", n, size).Try("Give one list for each rank, separated by /.")
	}
	lists := make([][]int, 0, size)
	for text := range strings.SplitSeq(arg, "/") {
		var list []int
		if text != "" {
			for word := range strings.SplitSeq(text, ",") {
				to, err := strconv.Atoi(word)
				if err != nil {
					return nil, say.Errorf(nil, "graph lists: rank %d: %s is not a rank", len(lists), quote(word)).Try("Write numbers separated by commas, such as lists:1,2/2/0.")
				}
				list = append(list, to)
			}
		}
		lists = append(lists, list)
	}
	return FromLists(lists)
}

func formatLists(lists [][]int) string {
	b := []byte("lists:")
	for rank, list := range lists {
		if rank > 0 {
			b = append(b, '/')
		}
		for i, to := range list {
			if i > 0 {
				b = append(b, ',')
			}
			b = strconv.AppendInt(b, int64(to), 10)
		}
	}
	return string(b)
}

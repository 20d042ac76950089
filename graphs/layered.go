package graphs

import "malt/internal/say"

// hypercube joins ranks whose numbers differ in one bit, lowest bit first. Each
// bit is a layer: exchanging along one after the other reaches everybody.
func hypercube(size int, _ string) (*Graph, error) {
	layers := floorLog2(size)
	if size != 1<<layers {
		return nil, say.Errorf(nil, "graph hypercube needs a power of two, got %d ranks", size).
			Try("Take %d or %d ranks, or the graph halton, which works for any number.", 1<<layers, 1<<(layers+1))
	}
	lists := make([][]int, size)
	for rank := range lists {
		lists[rank] = make([]int, layers)
		for i := range layers {
			lists[rank][i] = rank ^ 1<<i
		}
	}
	return fromValid(lists), nil
}

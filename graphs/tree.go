package graphs

// star joins rank 0 with every other rank, both ways: the shape of a parameter
// server.
func star(size int, _ string) (*Graph, error) {
	lists := make([][]int, size)
	lists[0] = allOffsets(size)
	for rank := 1; rank < size; rank++ {
		lists[rank] = []int{0}
	}
	return fromValid(lists), nil
}

package core

import "slices"

// View is the set of ranks that take part, and its number, which grows when the set
// changes. Ranks keep their numbers: what each has mapped stays where it is, and a smaller
// view divides the same memory among fewer ranks.
type View struct {
	Generation uint64
	Ranks      []int // ascending
}

// everyone is the view with which a job of so many ranks begins.
func everyone(size int) View {
	v := View{Generation: 1}
	for r := range size {
		v.Ranks = append(v.Ranks, r)
	}
	return v
}

// Part is which of the equal parts of something rank has, and how many there are.
func (v View) Part(rank int) (part, of int) {
	part, _ = slices.BinarySearch(v.Ranks, rank)
	return part, len(v.Ranks)
}

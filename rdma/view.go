package rdma

import "slices"

// View is the set of ranks that take part, and its number, which grows when the set
// changes. Ranks keep their numbers: what each has mapped stays where it is, and a smaller
// view divides the same memory among fewer ranks.
type View struct {
	Generation uint64 // from 1; two views of one job that have the same are the same
	Ranks      []int  // ascending; nobody changes them
}

// Everyone is the view with which a job of so many ranks begins.
func Everyone(size int) View {
	v := View{Generation: 1}
	for r := range size {
		v.Ranks = append(v.Ranks, r)
	}
	return v
}

// Has tells whether rank takes part.
func (v View) Has(rank int) bool {
	_, in := slices.BinarySearch(v.Ranks, rank)
	return in
}

// Part is which of the equal parts of something rank has, and how many there are.
func (v View) Part(rank int) (part, of int) {
	part, _ = slices.BinarySearch(v.Ranks, rank)
	return part, len(v.Ranks)
}

// Viewed is a Transport on which a job can go on when a rank dies.
type Viewed interface {
	Transport
	// Survive has the job go on, from now on, when a rank dies, as long as least are
	// left. All ranks say the same.
	Survive(least int)
	// View is who takes part: all, until Survive. Then a rank of which State has told
	// that it is dead is not among them, unless too few are left, or it has said so itself
	// (Abort): such a death ends the job.
	View() View
	// Expel ends the process of another rank of this machine, as a hang has to be.
	Expel(rank int) error
}

package shared

// A rank that dies before it has folded its span has an heir, another rank of the pass,
// which goes on where the dead one stopped, in its words, and says in the end that its
// span is folded: the others wait for that as before. An heir that dies has an heir, too.
//
// The rank that finds it dead becomes the heir, by a swap of wordHeir, which the dead rank has:
//
//	pass number<<16 | heir
//
// So one living rank at a time works on a span, and after a death nobody stores to it but
// the next. The block that wordDone does not count yet may be in some arrays already. A
// sum is not folded twice: wordReady says whether its result is in the spare (pass.fold).
// For min and max it does not matter. Of a mean, elements that are alike in all arrays
// stay as they are; the others are of one tile, since the kernels store tile by tile
// (package reduce): they become the mean of what is there, which lies between the least
// and the greatest of the operands, and is the same for all ranks.

// heirBits are those of wordHeir that tell the heir.
const heirBits = 16

// unfolded appends to late the ranks that have yet to fold in that pass, and folds for
// those that have died.
func (r *Route) unfolded(p *pass, late []int) []int {
	word, folded := p.end()
	for _, rank := range p.folding() {
		at := r.shared.Get(rank, word)
		if at < folded && r.o.Lost(rank) {
			if heir := r.heir(p, rank); heir != r.rank {
				late = append(late, heir)
				continue
			}
			r.mend(p, rank)
		} else if at < folded {
			late = append(late, rank)
		}
	}
	return late
}

// heir is that of a rank that has died, from now on this one where there is none.
func (r *Route) heir(p *pass, rank int) int {
	for {
		w := r.shared.Get(rank, wordHeir)
		if w>>heirBits == p.number {
			if heir := int(w & (1<<heirBits - 1)); heir == r.rank || !r.o.Lost(heir) {
				return heir
			}
		}
		r.shared.Swap(rank, wordHeir, w, p.number<<heirBits|uint64(r.rank))
	}
}

// mend folds what is left of the span of rank, whose heir this rank is. Where the rank has
// folded it all just before it died, or its last heir has, nothing is left.
func (r *Route) mend(p *pass, rank int) {
	word, folded := p.end()
	at := r.shared.Get(rank, word)
	if at >= folded {
		return
	}
	r.fold(p, rank)
	r.shared.Swap(rank, word, at, folded)
	r.shared.Ring()
}

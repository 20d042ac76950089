package spvec

import (
	"math/bits"
	"slices"

	"malt/libmalt/reduce"
)

// halves tells whether foldHalves does: the mean of two gradients, of which one
// is an update of some rows.
func (j *job) halves() bool {
	return len(j.us) == 1 && j.absent == Zero && j.op == Mean && j.ownIn && !j.weigh && !j.us[0].All && len(j.us[0].place) == 0
}

// foldHalves folds block by block: rows that are mentioned as foldOne does, and of
// the others, to which zeros are added, what is not zero is halved.
func foldHalves[T float](f *Folder, j *job, own []T) {
	u, w, size := &j.us[0], j.shape.Width, j.shape.RowBytes()
	values, index := view[T](u.values), u.Index
	rows := max(1, blockElements/w)
	for at := 0; at < j.shape.Rows; at += rows {
		end := min(at+rows, j.shape.Rows)
		n := 0 // rows of the block that are mentioned
		for n < len(index) && int(index[n]) < end {
			n++
		}
		masks := reduce.Masks((end - at) * size)
		f.masks = slices.Grow(f.masks[:0], masks)[:masks]
		reduce.Differ(f.masks, j.raw[at*size:end*size], nil)
		for _, r := range index[:n] {
			unset(f.masks, (int(r)-at)*size/4, size/4)
		}
		halve(own[at*w:end*w], f.masks, j.shape.Elem/4)
		oneOfRows(Mean, own, w, index[:n], values)
		index, values = index[n:], values[n*w:]
	}
}

// halve halves the elements, of so many words each, of which a word is set.
func halve[T float](x []T, masks []uint64, words int) {
	for i, m := range masks {
		for m != 0 {
			e := (64*i + bits.TrailingZeros64(m)) / words
			x[e] *= 0.5
			m = behind(m, (e+1)*words-64*i)
		}
	}
}

// unset clears n bits of masks from bit at on.
func unset(masks []uint64, at, n int) {
	for n > 0 {
		i, first := at/64, at%64
		some := min(n, 64-first)
		masks[i] &^= (^uint64(0) >> (64 - some)) << first
		at, n = at+some, n-some
	}
}

package spvec

import "malt/libmalt/reduce"

// longBytes is the length from which a row is folded as a vector of its own.
const longBytes = 512

// long tells whether foldLong does.
func (j *job) long() bool {
	return j.absent == Keep && j.op != Replace && j.shape.RowBytes() >= longBytes
}

// foldLong folds row by row, each by the kernels of whole vectors. from is as of Fold.
func foldLong(f *Folder, j *job) (from int) {
	from = reduce.None
	size, dt := j.shape.RowBytes(), reduce.Float32
	if j.shape.Elem == 8 {
		dt = reduce.Float64
	}
	f.restart(j)
	for row := f.first(j); row < j.shape.Rows; row = f.first(j) {
		own := j.raw[row*size : (row+1)*size]
		f.srcs, f.ranks, f.weight = f.srcs[:0], f.ranks[:0], f.weight[:0]
		add := func(rank int, x []byte, weight float64) {
			f.srcs, f.ranks, f.weight = append(f.srcs, x), append(f.ranks, rank), append(f.weight, weight)
		}
		for i := range j.us {
			if i == j.before && j.ownIn {
				add(reduce.None, own, j.own)
			}
			u, next := &j.us[i], f.next[i]
			switch {
			case u.All:
				add(u.Rank, u.values[row*size:(row+1)*size], u.Weight)
				f.next[i]++
			case next < len(u.Index) && int(u.Index[next]) == row:
				p := next
				if len(u.place) > 0 {
					p = int(u.place[next])
				}
				add(u.Rank, u.values[p*size:(p+1)*size], u.Weight)
				f.next[i]++
			}
		}
		if j.ownIn && j.before >= len(j.us) {
			add(reduce.None, own, j.own)
		}
		weights := f.weight
		if !j.weigh {
			weights = nil
		}
		if i := reduce.Fold(j.op, dt, own, f.srcs, weights); i >= 0 {
			from = reduce.Earlier(from, f.ranks[i])
		}
	}
	clear(f.srcs[:cap(f.srcs)])
	return from
}

package spvec

import "malt/libmalt/reduce"

// longBytes is the length from which a row is folded as a vector of its own.
const longBytes = 512

// long tells whether foldLong does.
func (j *job) long() bool {
	return j.absent == Keep && j.op != Replace && j.shape.RowBytes() >= longBytes
}

// foldLong folds row by row, each by the kernels of whole vectors.
func foldLong(f *Folder, j *job) {
	size, dt := j.shape.RowBytes(), reduce.Float32
	if j.shape.Elem == 8 {
		dt = reduce.Float64
	}
	f.restart(j)
	for row := f.first(j); row < j.shape.Rows; row = f.first(j) {
		own := j.raw[row*size : (row+1)*size]
		f.srcs, f.weight = f.srcs[:0], f.weight[:0]
		add := func(x []byte, weight float64) {
			f.srcs, f.weight = append(f.srcs, x), append(f.weight, weight)
		}
		for i := range j.us {
			if i == j.before && j.ownIn {
				add(own, j.own)
			}
			u, next := &j.us[i], f.next[i]
			switch {
			case u.All:
				add(u.values[row*size:(row+1)*size], u.Weight)
				f.next[i]++
			case next < len(u.Index) && int(u.Index[next]) == row:
				p := next
				if len(u.place) > 0 {
					p = int(u.place[next])
				}
				add(u.values[p*size:(p+1)*size], u.Weight)
				f.next[i]++
			}
		}
		if j.ownIn && j.before >= len(j.us) {
			add(own, j.own)
		}
		weights := f.weight
		if !j.weigh {
			weights = nil
		}
		reduce.Fold(j.op, dt, own, f.srcs, weights)
	}
	clear(f.srcs[:cap(f.srcs)])
}

package spvec

import "bytes"

type float interface{ float32 | float64 }

// fold carries out j over elements of type T with sums of type A, and returns
// acc, its working memory.
func fold[T, A float](f *Folder, j *job, acc []A, own []T) []A {
	passed := false // own's turn is over: rows found later begin with it
	for i := range j.us {
		if i == j.before && j.ownIn {
			acc, passed = addOwn(f, j, acc, own), true
		}
		acc = addUpdate(f, j, acc, own, &j.us[i], passed)
	}
	if j.ownIn && !passed {
		acc = addOwn(f, j, acc, own)
	}
	if j.absent == Zero {
		rest(f, j, own)
	}
	store(f, j, acc, own)
	return acc
}

// addUpdate combines the rows of u.
func addUpdate[T, A float](f *Folder, j *job, acc []A, own []T, u *Update, passed bool) []A {
	w, values := j.shape.Width, view[T](u.values)
	if w == 1 && !j.weigh && j.op != Min && j.op != Max && !u.All && len(u.place) == 0 {
		return addSingles(f, acc, own, u.Index, values, passed)
	}
	for i := range u.Len(j.shape) {
		row, p := uint32(i), i
		if !u.All {
			row = u.Index[i]
			if len(u.place) > 0 {
				p = int(u.place[i])
			}
		}
		x := values[p*w : p*w+w]
		at := f.slot[row]
		if at == 0 {
			f.touched, f.count = append(f.touched, row), append(f.count, 1)
			f.slot[row] = uint32(len(f.touched))
			if j.weigh {
				f.weight = append(f.weight, u.Weight)
			}
			if !passed {
				acc = begin(j, acc, x, u.Weight)
				continue
			}
			acc = begin(j, acc, own[int(row)*w:int(row)*w+w], j.own)
			combine(j, acc[len(acc)-w:], x, u.Weight)
			continue
		}
		f.count[at-1]++
		if j.weigh {
			f.weight[at-1] += u.Weight
		}
		combine(j, acc[int(at-1)*w:int(at)*w], x, u.Weight)
	}
	return acc
}

// addSingles is addUpdate where a row is one element and only added.
func addSingles[T, A float](f *Folder, acc []A, own []T, index []uint32, values []T, passed bool) []A {
	slot, touched, count := f.slot, f.touched, f.count
	values = values[:len(index)]
	for i, row := range index {
		x := A(values[i])
		if at := slot[row]; at != 0 {
			acc[at-1] += x
			count[at-1]++
			continue
		}
		if passed {
			x = A(own[row]) + x
		}
		acc, touched, count = append(acc, x), append(touched, row), append(count, 1)
		slot[row] = uint32(len(touched))
	}
	f.touched, f.count = touched, count
	return acc
}

// addOwn combines the own values of the rows found so far.
func addOwn[T, A float](f *Folder, j *job, acc []A, own []T) []A {
	w := j.shape.Width
	if w == 1 && !j.weigh && j.op != Min && j.op != Max {
		for t, row := range f.touched {
			acc[t] += A(own[row])
		}
		return acc
	}
	for t, row := range f.touched {
		combine(j, acc[t*w:t*w+w], own[int(row)*w:int(row)*w+w], j.own)
	}
	return acc
}

// begin appends the first operand of a row.
func begin[T, A float](j *job, acc []A, x []T, weight float64) []A {
	if j.weigh {
		for _, v := range x {
			acc = append(acc, A(weight*float64(v)))
		}
		return acc
	}
	for _, v := range x {
		acc = append(acc, A(v))
	}
	return acc
}

// combine puts one more operand of a row into acc.
func combine[T, A float](j *job, acc []A, x []T, weight float64) {
	x = x[:len(acc)]
	switch {
	case j.op == Min:
		for i := range acc {
			acc[i] = min(acc[i], A(x[i]))
		}
	case j.op == Max:
		for i := range acc {
			acc[i] = max(acc[i], A(x[i]))
		}
	case j.weigh:
		for i := range acc {
			acc[i] += A(weight * float64(x[i]))
		}
	default:
		for i := range acc {
			acc[i] += A(x[i])
		}
	}
}

// store ends the rows that were found, and forgets them.
func store[T, A float](f *Folder, j *job, acc []A, own []T) {
	w := j.shape.Width
	if j.op == Mean && j.ownIn && !j.weigh && w == 1 {
		for t, row := range f.touched {
			f.slot[row] = 0
			d := A(f.count[t] + 1)
			if j.absent == Zero {
				d = A(j.divisor)
			}
			own[row] = T(acc[t] / d)
		}
		return
	}
	for t, row := range f.touched {
		f.slot[row] = 0
		x, out := acc[t*w:t*w+w], own[int(row)*w:int(row)*w+w]
		switch {
		case j.op == Mean || j.op == MeanReceived:
			d := A(f.divisor(j, t))
			for i, v := range x {
				out[i] = T(v / d)
			}
		case j.absent == Zero && j.op != Sum && int(f.count[t]) < len(j.us):
			for i, v := range x {
				out[i] = T(withZero(j.op, v))
			}
		default:
			for i, v := range x {
				out[i] = T(v)
			}
		}
	}
}

// divisor is that of the t-th row found.
func (f *Folder) divisor(j *job, t int) float64 {
	switch {
	case j.absent == Zero:
		return j.divisor
	case j.weigh && j.ownIn:
		return f.weight[t] + j.own
	case j.weigh:
		return f.weight[t]
	case j.ownIn:
		return float64(f.count[t] + 1)
	}
	return float64(f.count[t])
}

// rest ends the rows that no update mentions, where that is as if they were
// mentioned with zeros.
func rest[T float](f *Folder, j *job, own []T) {
	if j.op == Sum {
		return
	}
	if j.op == Mean && j.ownIn && !j.weigh {
		// Also the rows that are mentioned: their own values are in acc, and store
		// overwrites them.
		d, step := T(j.divisor), blockBytes/j.shape.Elem
		for at := 0; at < len(own); at += step {
			x := own[at:min(at+step, len(own))]
			if b := j.raw[at*j.shape.Elem:][:len(x)*j.shape.Elem]; bytes.Equal(b, zeros[:len(b)]) {
				continue // as most of a gradient
			}
			for i, v := range x {
				if v != 0 {
					x[i] = v / d
				}
			}
		}
		return
	}
	w := j.shape.Width
	for row := range j.shape.Rows {
		if f.slot[row] != 0 {
			continue
		}
		x := own[row*w : row*w+w]
		switch {
		case !j.ownIn:
			clear(x)
		case j.op != Mean:
			for i, v := range x {
				x[i] = withZero(j.op, v)
			}
		case j.weigh:
			for i, v := range x {
				x[i] = T(j.own * float64(v) / j.divisor)
			}
		default:
			for i, v := range x {
				x[i] = T(v / T(j.divisor))
			}
		}
	}
}

func withZero[T float](op Op, v T) T {
	if op == Min {
		return min(v, 0)
	}
	return max(v, 0)
}

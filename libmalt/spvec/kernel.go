package spvec

import "slices"

type float interface{ float32 | float64 }

// blockElements is how many elements of the vector are folded at a time: what is
// noted of each stays in the nearest caches, however long the vector is.
const blockElements = 4096

// fold carries out j over elements of type T with sums of type A, block by block
// from one that an update mentions to the next. It returns acc, its working
// memory.
func fold[T, A float](f *Folder, j *job, acc []A, own []T) []A {
	w := j.shape.Width
	rows := max(1, blockElements/w)
	if len(acc) < rows*w {
		acc = make([]A, rows*w)
	}
	if len(f.count) < rows {
		f.count = make([]int32, rows)
	}
	if j.weigh {
		f.weight = slices.Grow(f.weight[:0], rows)[:rows]
	}
	f.restart(j)
	done := 0 // rows that are as they should be, of Zero
	for at := f.first(j); at < j.shape.Rows; at = f.first(j) {
		b := block{at, min(at+rows, j.shape.Rows)}
		passed := false // own's turn is over: rows found later begin with it
		for i := range j.us {
			if i == j.before && j.ownIn {
				addOwn(f, j, b, acc, own)
				passed = true
			}
			addUpdate(f, j, b, acc, own, i, passed)
		}
		if j.ownIn && !passed {
			addOwn(f, j, b, acc, own)
		}
		if j.absent == Zero {
			// Also of rows that are mentioned: their own values are in acc.
			rest(f, j, own, done*w, b.end*w)
			done = b.end
		}
		store(f, j, b, acc, own)
	}
	if j.absent == Zero {
		rest(f, j, own, done*w, len(own))
	}
	return acc
}

// block is the rows from at to end.
type block struct{ at, end int }

// restart says that no row is folded yet.
func (f *Folder) restart(j *job) {
	f.next = slices.Grow(f.next[:0], len(j.us))[:len(j.us)]
	clear(f.next)
}

// first is the first row that an update mentions and that is not folded yet.
func (f *Folder) first(j *job) int {
	least := j.shape.Rows
	for i, next := range f.next {
		switch u := &j.us[i]; {
		case u.All:
			least = min(least, next)
		case next < len(u.Index):
			least = min(least, int(u.Index[next]))
		}
	}
	return least
}

// addUpdate combines the rows of b that the i-th update mentions.
func addUpdate[T, A float](f *Folder, j *job, b block, acc []A, own []T, i int, passed bool) {
	u, w := &j.us[i], j.shape.Width
	values, next := view[T](u.values), f.next[i]
	if w == 1 && !j.weigh && j.op != Min && j.op != Max && !u.All && len(u.place) == 0 {
		f.next[i] = addSingles(f, b, acc, own, u.Index, values, next, passed)
		return
	}
	for n := u.Len(j.shape); next < n; next++ {
		row, p := next, next
		if !u.All {
			row = int(u.Index[next])
			if len(u.place) > 0 {
				p = int(u.place[next])
			}
		}
		if row >= b.end {
			break
		}
		x, at := values[p*w:p*w+w], row-b.at
		sum := acc[at*w : at*w+w]
		f.count[at]++
		if f.count[at] > 1 {
			if j.weigh {
				f.weight[at] += u.Weight
			}
			combine(j, sum, x, u.Weight)
			continue
		}
		f.touched = append(f.touched, uint32(at))
		if j.weigh {
			f.weight[at] = u.Weight
		}
		if !passed {
			begin(j, sum, x, u.Weight)
			continue
		}
		begin(j, sum, own[row*w:row*w+w], j.own)
		combine(j, sum, x, u.Weight)
	}
	f.next[i] = next
}

// addSingles is addUpdate where a row is one element and only added.
func addSingles[T, A float](f *Folder, b block, acc []A, own []T, index []uint32, values []T, next int, passed bool) int {
	touched, count := f.touched, f.count
	values, own, acc = values[:len(index)], own[b.at:b.end], acc[:len(count)]
	for ; next < len(index); next++ {
		at := int(index[next]) - b.at
		if at >= len(own) {
			break
		}
		x := A(values[next])
		if count[at] > 0 {
			acc[at] += x
			count[at]++
			continue
		}
		if passed {
			x = A(own[at]) + x
		}
		acc[at], count[at] = x, 1
		touched = append(touched, uint32(at))
	}
	f.touched = touched
	return next
}

// addOwn combines the own values of the rows found so far.
func addOwn[T, A float](f *Folder, j *job, b block, acc []A, own []T) {
	w := j.shape.Width
	own = own[b.at*w : b.end*w]
	if w == 1 && !j.weigh && j.op != Min && j.op != Max {
		for _, at := range f.touched {
			acc[at] += A(own[at])
		}
		return
	}
	for _, at := range f.touched {
		at := int(at) * w
		combine(j, acc[at:at+w], own[at:at+w], j.own)
	}
}

// begin puts the first operand of a row into acc.
func begin[T, A float](j *job, acc []A, x []T, weight float64) {
	x = x[:len(acc)]
	if j.weigh {
		for i := range acc {
			acc[i] = A(weight * float64(x[i]))
		}
		return
	}
	for i := range acc {
		acc[i] = A(x[i])
	}
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

// store ends the rows that were found in b, and forgets them.
func store[T, A float](f *Folder, j *job, b block, acc []A, own []T) {
	w, count := j.shape.Width, f.count
	own = own[b.at*w : b.end*w]
	for _, at := range f.touched {
		x, out := acc[int(at)*w:int(at)*w+w], own[int(at)*w:int(at)*w+w]
		switch {
		case j.op == Mean || j.op == MeanReceived:
			d := A(f.divisor(j, at))
			for i, v := range x {
				out[i] = T(v / d)
			}
		case j.absent == Zero && j.op != Sum && int(count[at]) < len(j.us):
			for i, v := range x {
				out[i] = T(withZero(j.op, v))
			}
		default:
			for i, v := range x {
				out[i] = T(v)
			}
		}
		count[at] = 0
	}
	f.touched = f.touched[:0]
}

// divisor is that of a row of the block that is mentioned.
func (f *Folder) divisor(j *job, at uint32) float64 {
	switch {
	case j.absent == Zero:
		return j.divisor
	case j.weigh && j.ownIn:
		return f.weight[at] + j.own
	case j.weigh:
		return f.weight[at]
	case j.ownIn:
		return float64(f.count[at] + 1)
	}
	return float64(f.count[at])
}

// rest combines the own elements from at to end with zeros alone, as they are
// where no update mentions them. Most of a gradient is zero, and stays that.
func rest[T float](f *Folder, j *job, own []T, at, end int) {
	if j.op == Sum {
		return
	}
	size := j.shape.Elem
	for ; at < end; at += blockElements {
		to := min(at+blockElements, end)
		f.found = NonZero(f.found[:0], Shape{to - at, 1, size}, j.raw[at*size:to*size], to-at+1)
		x := own[at:to]
		switch {
		case !j.ownIn:
			clear(x)
		case j.op != Mean:
			for _, i := range f.found {
				x[i] = withZero(j.op, x[i])
			}
		case j.weigh:
			for _, i := range f.found {
				x[i] = T(j.own * float64(x[i]) / j.divisor)
			}
		default:
			for _, i := range f.found {
				x[i] /= T(j.divisor)
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

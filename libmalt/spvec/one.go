package spvec

// one tells whether foldOne does: a single update of some rows, of the own
// value's weight. Between two ranks, and on a ring, there is no other.
func (j *job) one() bool {
	return len(j.us) == 1 && j.absent == Keep && j.ownIn && !j.weigh && !j.us[0].All
}

// foldOne folds the only update into its rows, in place: each is looked up once.
// Of two operands neither the order matters nor, in a mean, whether the sum is
// halved or divided by 2.
func foldOne[T float](j *job, own []T) {
	u, w := &j.us[0], j.shape.Width
	values := view[T](u.values)
	if len(u.place) == 0 {
		oneOfRows(j.op, own, w, u.Index, values)
		return
	}
	for i, r := range u.Index {
		p := int(u.place[i])
		oneRow(j.op, own[int(r)*w:int(r)*w+w], values[p*w:p*w+w])
	}
}

// oneOfRows folds rows of w values, one behind the other.
func oneOfRows[T float](op Op, own []T, w int, index []uint32, values []T) {
	switch {
	case w == 1:
		oneOfSingles(op, own, index, values)
	case w%4 == 0 && op == Mean:
		oneOfFours(own, w, index, values)
	default:
		for i, r := range index {
			oneRow(op, own[int(r)*w:int(r)*w+w], values[i*w:i*w+w])
		}
	}
}

func oneRow[T float](op Op, own, x []T) {
	x = x[:len(own)]
	switch op {
	case Mean:
		for i, v := range own {
			own[i] = (v + x[i]) * 0.5
		}
	case Sum:
		for i, v := range own {
			own[i] = v + x[i]
		}
	case Min:
		for i, v := range own {
			own[i] = min(v, x[i])
		}
	case Max:
		for i, v := range own {
			own[i] = max(v, x[i])
		}
	}
}

// oneOfFours is the mean of rows of w elements, four at a time.
func oneOfFours[T float](own []T, w int, index []uint32, values []T) {
	for i, r := range index {
		row, x := own[int(r)*w:int(r)*w+w], values[i*w:i*w+w]
		for len(row) >= 4 && len(x) >= 4 {
			row[0], row[1] = (row[0]+x[0])*0.5, (row[1]+x[1])*0.5
			row[2], row[3] = (row[2]+x[2])*0.5, (row[3]+x[3])*0.5
			row, x = row[4:], x[4:]
		}
	}
}

func oneOfSingles[T float](op Op, own []T, index []uint32, values []T) {
	values = values[:len(index)]
	switch op {
	case Mean:
		for i, r := range index {
			own[r] = (own[r] + values[i]) * 0.5
		}
	case Sum:
		for i, r := range index {
			own[r] += values[i]
		}
	case Min:
		for i, r := range index {
			own[r] = min(own[r], values[i])
		}
	case Max:
		for i, r := range index {
			own[r] = max(own[r], values[i])
		}
	}
}

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
	if w == 1 && len(u.place) == 0 {
		oneOfSingles(j.op, own, u.Index, values)
		return
	}
	for i, r := range u.Index {
		p := i
		if len(u.place) > 0 {
			p = int(u.place[i])
		}
		out, x := own[int(r)*w:int(r)*w+w], values[p*w:p*w+w]
		switch j.op {
		case Mean:
			for len(out) >= 4 && len(x) >= 4 {
				out[0], out[1], out[2], out[3] = (out[0]+x[0])*0.5, (out[1]+x[1])*0.5, (out[2]+x[2])*0.5, (out[3]+x[3])*0.5
				out, x = out[4:], x[4:]
			}
			for i, v := range x {
				out[i] = (out[i] + v) * 0.5
			}
		case Sum:
			for i, v := range x {
				out[i] += v
			}
		case Min:
			for i, v := range x {
				out[i] = min(out[i], v)
			}
		case Max:
			for i, v := range x {
				out[i] = max(out[i], v)
			}
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

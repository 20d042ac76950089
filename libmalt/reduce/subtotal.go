package reduce

// If ranks are on several hosts, a fold over all of them adds up the operands of each
// host first, in the order of ranks, and then the subtotals of the hosts, in the order
// of their lowest ranks. So the result has the same bits whether all operands are at
// hand or each host sends the subtotal of its ranks.
//
// A Subtotal is of one host, or of one rank. Without weights it is a sum, so that a
// mean is divided once, at the end. With weights that differ within the host it is
// their mean, rounded to the element type, and weighs as much as they do together.
type Subtotal struct {
	Data   []byte
	Rank   int     // of which Data is; Unknown: of several
	Count  int     // Data is the sum over so many ranks; 0: their weighted mean
	Weight float64 // of each of these ranks; of all together if Count is 0
}

// Adder adds up subtotals. It keeps its buffers from one fold to the next.
type Adder struct {
	Terms []Subtotal // operands of AddTerms: the ranks of one host
	Parts []Subtotal // operands of FoldParts: all hosts
	From  int        // rank that brings NaN or infinity into results since the caller has set it to None

	srcs    [][]byte
	ranks   []int // of srcs
	weights []float64
	rooms   [][]byte // of each of the Parts: one block
}

// Room is n bytes of memory for the data of Parts[part]. FoldParts uses it, too.
func (a *Adder) Room(part, n int) []byte {
	for len(a.rooms) <= part {
		a.rooms = append(a.rooms, nil)
	}
	if len(a.rooms[part]) < n {
		a.rooms[part] = make([]byte, n)
	}
	return a.rooms[part][:n]
}

// AddTerms adds up the Terms, which lie at off of an object made of runs, into dst.
// Terms without weight take no part in a mean.
func (a *Adder) AddTerms(op Op, runs []Run, off int, dst []byte) Subtotal {
	sum := a.Total(op)
	a.empty()
	for _, t := range a.Terms {
		if t.Weight > 0 || !op.Weighted() {
			a.add(t)
			a.weights = append(a.weights, t.Weight)
		}
	}
	switch {
	case sum.Count == 0:
		a.fold(op, runs, off, dst, a.weights, 0)
	case op.Weighted():
		a.fold(Sum, runs, off, dst, nil, 0)
	default:
		a.fold(op, runs, off, dst, nil, 0)
	}
	clear(a.srcs)
	sum.Data = dst
	return sum
}

func (a *Adder) empty() { a.srcs, a.ranks, a.weights = a.srcs[:0], a.ranks[:0], a.weights[:0] }

func (a *Adder) add(t Subtotal) { a.srcs, a.ranks = append(a.srcs, t.Data), append(a.ranks, t.Rank) }

func (a *Adder) fold(op Op, runs []Run, off int, dst []byte, weights []float64, sums int) {
	from := FoldRuns(op, runs, off, dst, a.srcs, weights, sums)
	if from >= 0 {
		from = a.ranks[from]
	}
	a.From = Earlier(a.From, from)
}

// Total is what AddTerms returns for the Terms, without the data.
func (a *Adder) Total(op Op) (sum Subtotal) {
	if !op.Weighted() {
		return Subtotal{Rank: Unknown, Count: len(a.Terms), Weight: 1}
	}
	sum.Rank = Unknown
	total, same := 0.0, true
	for _, t := range a.Terms {
		if t.Weight > 0 {
			same = same && (sum.Count == 0 || t.Weight == sum.Weight)
			sum.Weight = t.Weight
			sum.Count++
			total += t.Weight
		}
	}
	if !same {
		return Subtotal{Rank: Unknown, Weight: total}
	}
	return sum
}

// FoldParts folds the Parts, which lie at off of an object made of runs, into dst,
// which may be one of them. It returns false, and leaves dst as it is, if no part has a
// weight.
func (a *Adder) FoldParts(op Op, runs []Run, off int, dst []byte) bool {
	a.empty()
	defer func() { clear(a.srcs) }()
	if !op.Weighted() {
		for _, p := range a.Parts {
			a.add(p)
		}
		a.fold(op, runs, off, dst, nil, 0)
		return len(a.srcs) > 0
	}
	n, weight, same := 0, 0.0, true
	for _, p := range a.Parts {
		if p.Weight == 0 {
			continue
		}
		same = same && p.Count > 0 && (weight == 0 || p.Weight == weight)
		n, weight = n+p.Count, p.Weight
		a.add(p)
	}
	if same {
		if n > 0 {
			a.fold(op, runs, off, dst, nil, n)
		}
		return n > 0
	}
	a.empty()
	for i, p := range a.Parts {
		if p.Weight == 0 {
			continue
		}
		if p.Count > 1 {
			mean := a.Room(i, len(dst))
			one := [1][]byte{p.Data}
			FoldRuns(op, runs, off, mean, one[:], nil, p.Count)
			p.Data, p.Weight = mean, p.Weight*float64(p.Count)
		}
		a.add(p)
		a.weights = append(a.weights, p.Weight)
	}
	a.fold(op, runs, off, dst, a.weights, 0)
	return true
}

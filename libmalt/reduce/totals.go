package reduce

// Totals adds up what an array changes by since all ranks had the same values: its start. One
// goroutine at a time.
type Totals struct {
	Runs   []Run
	Share  float64 // of a change that counts
	Weight float64 // of the last Add

	Start  []byte
	Sum    []byte // of the changes
	Shadow []byte // the array after the last Add or Apply; what it differs by is not in Sum
	Last   []byte // nil, or where Add adds the changes to as well

	all, srcs [][]byte
	room      []byte
}

// TotalsBytes is how much memory NewTotals takes.
func TotalsBytes(runs []Run) int { return max(3*bytesOf(runs), 1) }

func bytesOf(runs []Run) int {
	last := runs[len(runs)-1]
	return last.Off + last.Bytes
}

// NewTotals is for an array of these runs, with op, SumChanges or MeanChanges over so many
// ranks. It takes block bytes at a time. The array has values at the first Renew.
func NewTotals(runs []Run, op Op, ranks int, memory []byte, block int) Totals {
	n := bytesOf(runs)
	t := Totals{Runs: runs, Share: 1, Weight: 1, Start: memory[:n], Sum: memory[n : 2*n], Shadow: memory[2*n : 3*n], room: make([]byte, block)}
	if op == MeanChanges {
		t.Share = 1 / float64(ranks)
	}
	return t
}

// Add adds what the array has changed by, times weight, to the sum, and copies that to dst, if
// there is one. A negative weight is that of the last Add, or 1.
func (t *Totals) Add(array []byte, weight float64, dst []byte) {
	if weight >= 0 {
		t.Weight = weight
	}
	change(t.Runs, 0, changed{t.Sum, t.Sum, t.Shadow, array, dst, t.Last}, t.Weight*t.Share, false)
}

// Apply makes the array start + sums, in their order, + what has changed since the last Add. from
// is the index of the sum that brings NaN or infinity, None or Unknown.
func (t *Totals) Apply(array []byte, sums [][]byte) (from int) {
	t.all = append(append(t.all[:0], t.Start), sums...)
	from = t.ApplyPart(array, 0, len(t.Sum), t.all)
	clear(t.all)
	switch from {
	case None, Unknown:
		return from
	case 0:
		return Unknown // the start
	}
	return from - 1
}

// ApplyPart makes the bytes of the array from first to end the sum of these, which are as long, +
// what has changed since the last Add.
func (t *Totals) ApplyPart(array []byte, first, end int, sums [][]byte) (from int) {
	from = None
	for lo := first; lo < end; lo += len(t.room) {
		hi := min(lo+len(t.room), end)
		t.srcs = t.srcs[:0]
		for _, s := range sums {
			t.srcs = append(t.srcs, s[lo-first:hi-first])
		}
		now := t.room[:hi-lo]
		from = Earlier(from, FoldRuns(Sum, t.Runs, lo, now, t.srcs, nil, 0))
		change(t.Runs, lo, changed{array[lo:hi], now, t.Shadow[lo:hi], array[lo:hi]}, 1, true)
	}
	clear(t.srcs)
	return from
}

// Renew begins again, with start + sums as the values of the array; without sums, with those
// that it has. The array may be one of them.
func (t *Totals) Renew(array []byte, sums [][]byte) {
	if len(sums) > 0 {
		t.srcs = append(append(t.srcs[:0], t.Start), sums...)
		FoldRuns(Sum, t.Runs, 0, array, t.srcs, nil, 0)
		clear(t.srcs)
	}
	Copy(t.Start, array)
	Copy(t.Shadow, array)
	clear(t.Sum)
}

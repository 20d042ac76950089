package processes

import (
	"fmt"
	"math/bits"
	"slices"

	"malt/libmalt"
	"malt/libmalt/reduce"
)

// meeting is a collective call: what each rank noted of it.
type meeting struct {
	n                      int64
	by                     []*event // by rank; nil: it did not begin
	began, returned, among uint64
	one                    *event // of a rank that returned
}

func (q *inquest) judgeCalls() error {
	for n := int64(1); ; n++ {
		m := meeting{n: n, by: make([]*event, q.ranks)}
		for r, log := range q.logs {
			for i := range log {
				if e := &log[i]; e.Kind == called && e.Call == n {
					m.by[r] = e
					m.began |= 1 << r
					if e.Ended != 0 {
						m.returned |= 1 << r
						if m.one == nil || !q.fell[r] {
							m.one = e
						}
					}
				}
			}
		}
		if m.one == nil {
			return nil
		}
		if err := q.judgeCall(m); err != nil {
			return fmt.Errorf("collective call %d (%s): %w", n, collectiveNames[m.one.Op], err)
		}
	}
}

// judgeCall: all who return have made the call among the same ranks, of which each has
// begun it, and have the same result.
func (q *inquest) judgeCall(m meeting) error {
	kind := collectiveKind(m.one.Op)
	m.among = m.one.Members
	if kind == churnSync {
		m.among = uint64(m.one.Result.Values[0])
		if m.one.Result.Odd > 0 && m.inPlace() {
			m.among = m.returned // in some elements the dead count
		}
	}
	if q.weather != nil { // what came to one that died then is nobody's matter
		for _, r := range ranksOf(m.returned &^ m.among) {
			if q.fell[r] {
				m.returned &^= 1 << r
			}
		}
	}
	if m.returned&^m.among != 0 || m.among&^m.began != 0 {
		return fmt.Errorf("among ranks %v; %v have begun it, and %v have returned", ranksOf(m.among), ranksOf(m.began), ranksOf(m.returned))
	}
	if dead := m.among &^ m.returned; dead != 0 {
		q.tally.add("calls with a rank that died in them", 1)
	} else if m.began&^m.among != 0 {
		q.tally.add("calls without a rank that died in them", 1)
	}
	for _, r := range ranksOf(m.returned) {
		e := m.by[r]
		if e.Op != m.one.Op {
			return fmt.Errorf("rank %d was in %s", r, collectiveNames[e.Op])
		}
		if kind != churnSync {
			if e.Generation != m.one.Generation || e.Members != m.one.Members {
				return fmt.Errorf("rank %d has returned in generation %d, of ranks %v; another in %d, of %v", r,
					e.Generation, ranksOf(e.Members), m.one.Generation, ranksOf(m.one.Members))
			}
			if err := q.judgeLevel(m, e.Clock); err != nil {
				return fmt.Errorf("rank %d: %w", r, err)
			}
		}
		if q.weather != nil && q.fell[r] {
			continue // as above, and in a sync what it has folded, too
		}
		if err := q.judgeResult(m, r); err != nil {
			return fmt.Errorf("rank %d: %w", r, err)
		}
	}
	return nil
}

// judgeLevel: a call raises all clocks to the largest of its ranks. One that died in
// it may have told of its own before.
func (q *inquest) judgeLevel(m meeting, got uint64) error {
	if got != m.one.Clock {
		return fmt.Errorf("is at clock %d afterwards, another at %d", got, m.one.Clock)
	}
	most := uint64(0)
	for _, r := range ranksOf(m.among) {
		most = max(most, m.by[r].Before)
	}
	for _, r := range ranksOf(m.began &^ m.among) {
		if m.by[r].Before == got && got > most {
			return nil
		}
	}
	if got != most {
		return fmt.Errorf("is at clock %d afterwards, and the largest was %d", got, most)
	}
	return nil
}

// inPlace tells whether the ranks combine their arrays where they lie.
func (m *meeting) inPlace() bool { return m.one.InPlace && m.began&^m.returned != 0 }

func (q *inquest) judgeResult(m meeting, rank int) error {
	e := m.by[rank]
	got, c := e.Result, q.callOf(m.n)
	rootIn := has(m.among, c.root)
	switch kind := collectiveKind(e.Op); kind {
	case allReduce:
		return q.wantValues(m, got, []libmalt.DType{libmalt.Float64}, c.op)
	case allGather:
		if got.Set != m.among {
			return fmt.Errorf("has got values of ranks %v, of ranks %v", ranksOf(got.Set), ranksOf(m.among))
		}
	case broadcast, vectorBroadcast:
		if got.Lost == rootIn {
			return fmt.Errorf("the root, rank %d, takes part: %v; its death is the outcome: %v", c.root, rootIn, got.Lost)
		}
		if kind == vectorBroadcast {
			from := c.root
			if got.Lost {
				from = rank
			}
			m.among = 1 << from
			return q.wantValues(m, got, q.types(), "max")
		}
	case vectorAllReduce:
		return q.wantValues(m, got, q.types(), c.op)
	case churn:
		if want := bit(bits.TrailingZeros64(m.among)); got.Values[0] != want || got.Odd > 0 {
			return fmt.Errorf("begins with %v, of ranks %v", got, ranksOf(m.among))
		}
	case churnSync:
		if got.Sum != m.one.Result.Sum {
			return fmt.Errorf("G8: ranks have different sums: %v, another %v", got, m.one.Result)
		}
		if got.Odd > 0 && !m.inPlace() {
			return fmt.Errorf("the sum is torn: %v", got)
		}
	}
	return nil
}

// callOf is the plan's call of that number, as far as it says more than the notes.
func (q *inquest) callOf(n int64) (c collective) {
	at := int64(1)
	if q.noise {
		at++
	}
	for _, ph := range q.phases {
		for _, c := range ph.then {
			if at++; at == n {
				return c
			}
			if c.kind == churn {
				at++
			}
		}
	}
	return c
}

// types are those of the object's arrays; of an empty array none.
func (q *inquest) types() (types []libmalt.DType) {
	for _, a := range q.object.arrays {
		if types = append(types, a.DType); a.Count == 0 {
			types[len(types)-1] = 0
		}
	}
	return types
}

// wantValues holds a result of a call against that of what its ranks gave.
func (q *inquest) wantValues(m meeting, got result, types []libmalt.DType, op string) error {
	if got.Sum != m.one.Result.Sum && !got.Lost {
		return fmt.Errorf("G8: ranks have different results: %v, another %v", got, m.one.Result)
	}
	o, err := reduce.ParseOp(op)
	if err != nil {
		return err
	}
	var perhaps uint64 // arrived, and died before the others had gone on
	if m.inPlace() && collectiveKind(m.one.Op) == vectorAllReduce {
		perhaps = m.began &^ m.among
	}
	gave := func(ranks uint64) (operands []float64) {
		for _, r := range ranksOf(ranks) {
			operands = append(operands, m.by[r].Mine)
		}
		return operands
	}
	if m.inPlace() && got.Odd > 0 {
		operands := gave(m.among | perhaps)
		if least, most := slices.Min(operands), sumOf(operands); got.Low < least || got.High > most {
			return fmt.Errorf("%s of %v gives %v", op, operands, got)
		}
		q.tally.add("calls in place that a death met", 1)
		return nil
	}
	for some := perhaps; ; some = (some - 1) & perhaps { // each part of it
		operands := gave(m.among | some)
		if got.Odd == 0 && isFold(got, types, o, operands) {
			return nil
		}
		if some == 0 {
			return fmt.Errorf("%s of %v, and perhaps of %v of ranks that died in it, gives %v", op, operands, gave(perhaps), got)
		}
	}
}

// isFold tells whether arrays of these types have what the fold of the operands is.
func isFold(got result, types []libmalt.DType, op reduce.Op, operands []float64) bool {
	for i, dt := range types {
		if dt != 0 && got.Values[i] != simulated(op, dt, operands, nil) {
			return false
		}
	}
	return true
}

func sumOf(xs []float64) (sum float64) {
	for _, x := range xs {
		sum += x
	}
	return sum
}

// simulated is a fold of single elements of that type, in their order.
func simulated(op reduce.Op, dt libmalt.DType, operands, weights []float64) float64 {
	dst := make([]byte, dt.Size())
	var srcs [][]byte
	for _, x := range operands {
		src := make([]byte, dt.Size())
		fill(src, dt.Size(), x)
		srcs = append(srcs, src)
	}
	reduce.Fold(op, dt, dst, srcs, weights)
	x, _, _ := constant(dst, dt.Size())
	return x
}

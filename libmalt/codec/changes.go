package codec

import (
	"slices"

	"malt/internal/say"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
)

// changes sends the total of what this rank has changed since all had the same values:
// those of its start. The array of each rank is start + Σ totals + what its loop has changed
// since its last scatter. A newer total holds the older one, so overwriting loses nothing,
// and each sender has one that counts: its newest that has been read.
type changes struct {
	dense
	runs   []reduce.Run
	op     reduce.Op
	totals reduce.Totals
	mapped []byte // what they are cut from
	kept   [][]byte
	counts []bool // by rank: kept is its newest total

	sums [][]byte
	from []int // of these
}

// Cumulative is a codec of which the newest update of each sender counts, until a newer
// one has come.
type Cumulative interface {
	Codec
	// Keep copies an update that cannot be read any longer where it is.
	Keep(rank int, data []byte)
	// Kept is the last one that it has copied.
	Kept(rank int) []byte
	// Share is what this rank adds to a sum over all ranks, which then Settled ends; weight is of the changes
	// that it has not sent, negative: that of the last message.
	Share(weight float64) []byte
}

// NewChanges is the codec of the changes of m, a vector of these runs. Its array has
// values at the first Settled. Close it where it is not used, too.
func NewChanges(m *core.Member, runs []reduce.Run, op reduce.Op) (Codec, error) {
	p := newChanges(m, runs, op)
	mapped, err := m.Job.T.Map(reduce.TotalsBytes(runs))
	if err == nil {
		p.lay(mapped)
	}
	return p, err
}

func newChanges(m *core.Member, runs []reduce.Run, op reduce.Op) *changes {
	return &changes{dense: dense{m, true}, runs: runs, op: op, kept: make([][]byte, m.Job.Size), counts: make([]bool, m.Job.Size)}
}

func (p *changes) lay(mapped []byte) {
	p.mapped, p.totals = mapped, reduce.NewTotals(p.runs, p.op, p.m.Job.Size, mapped, core.BlockBytes)
}

func (p *changes) Name(rows []int64, to []int) error {
	switch {
	case to != nil:
		return say.Errorf(core.ErrUnsupported, "%s: to= does not go with the fold of changes", p.m.Called("scatter")).
			At("the sum of changes is that of all ranks").Try("Leave to= out.")
	case rows != nil:
		return say.Errorf(core.ErrInvalid, "%s has the fold of changes: it is sent as a whole, and rows cannot be named", p.m).Try("Leave rows= out.")
	}
	return nil
}

func (p *changes) Shows() error {
	return say.Errorf(core.ErrUnsupported, "%s: a function does not go with the fold of changes", p.m.Called("gather")).
		At("the updates are totals, of which the newest counts").Try("Leave fold= out, or make the vector with fold=mean.")
}

func (p *changes) Encode(slot []byte, m Message) (int, spvec.Kind, error) {
	p.totals.Add(p.m.Data, m.Weight, slot)
	return len(p.totals.Sum), 0, nil
}

// Fold makes the array start + Σ totals + what has changed since the last scatter. All add
// in the order of ranks: to the same bits, where the totals are the same. Alone the array
// stays as it is.
func (p *changes) Fold(_ reduce.Op, _ float64, us []Update) bool {
	if p.m.Job.Size == 1 {
		return true
	}
	p.sums, p.from = p.sums[:0], p.from[:0]
	for r, i := 0, 0; r < len(p.kept); r++ {
		switch come := i < len(us) && us[i].Rank == r; {
		case r == p.m.Job.Rank:
			p.sums = append(p.sums, p.totals.Sum)
		case come:
			p.sums = append(p.sums, us[i].Data)
			i++
		case p.counts[r]:
			p.sums = append(p.sums, p.kept[r])
		}
		if len(p.from) < len(p.sums) {
			p.from = append(p.from, r)
		}
	}
	p.m.Brought(p.totals.Apply(p.m.Data, p.sums), p.from)
	clear(p.sums)
	return true
}

// Keep copies the newest total of a rank that can no longer be read where it is.
func (p *changes) Keep(rank int, total []byte) {
	if p.kept[rank] == nil {
		p.kept[rank] = make([]byte, len(p.totals.Sum))
	}
	reduce.Copy(p.kept[rank], total)
	p.counts[rank] = true
}

func (p *changes) Kept(rank int) []byte { return p.kept[rank] }

// Share adds the last changes to the total.
func (p *changes) Share(weight float64) []byte {
	p.totals.Add(p.m.Data, weight, nil)
	return p.totals.Sum
}

// Settled begins a new era. After a sum of totals the array has those of these ranks; of
// the others the kept ones count.
func (p *changes) Settled(summed []int) {
	p.sums = p.sums[:0]
	if len(summed) > 0 && p.m.Job.Size > 1 {
		p.sums = append(p.sums, p.m.Data)
		if len(summed) == 1 {
			p.sums[0] = p.totals.Sum
		}
		for r, counts := range p.counts {
			if counts && !slices.Contains(summed, r) {
				p.sums = append(p.sums, p.kept[r])
			}
		}
	}
	p.totals.Renew(p.m.Data, p.sums)
	clear(p.sums)
	clear(p.counts)
}

func (p *changes) Close() (err error) {
	if p.mapped != nil {
		err = p.m.Job.T.Unmap(p.mapped)
		p.mapped = nil
	}
	return err
}

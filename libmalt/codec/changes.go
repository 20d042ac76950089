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
	runs  []reduce.Run
	share float64 // of a change that counts: 1, or one by the number of ranks

	mapped []byte // what the next three are cut from
	start  []byte
	total  []byte
	shadow []byte // the array after the last scatter or gather; what it differs by is not in total
	kept   [][]byte
	counts []bool // by rank: kept is its newest total

	srcs [][]byte
	room [core.BlockBytes]byte
}

// Cumulative is a codec of which the newest update of each sender counts, until a newer
// one has come.
type Cumulative interface {
	Codec
	// Keep copies an update that cannot be read any longer where it is.
	Keep(rank int, data []byte)
	// Share is what this rank adds to a sum over all ranks, which then Settled ends.
	Share() []byte
}

// NewChanges is the codec of the changes of m, a vector of these runs. Its array has
// values at the first Settled. Close it where it is not used, too.
func NewChanges(m *core.Member, runs []reduce.Run, op reduce.Op) (Codec, error) {
	p := newChanges(m, runs, op)
	mapped, err := m.Job.T.Map(max(3*p.bytes(), 1))
	if err == nil {
		p.lay(mapped)
	}
	return p, err
}

func newChanges(m *core.Member, runs []reduce.Run, op reduce.Op) *changes {
	p := &changes{dense: dense{m, true}, runs: runs, share: 1, kept: make([][]byte, m.Job.Size), counts: make([]bool, m.Job.Size)}
	if op == reduce.MeanChanges {
		p.share = 1 / float64(m.Job.Size)
	}
	return p
}

func (p *changes) bytes() int {
	last := p.runs[len(p.runs)-1]
	return last.Off + last.Bytes
}

func (p *changes) lay(mapped []byte) {
	n := p.bytes()
	p.mapped, p.start, p.total, p.shadow = mapped, mapped[:n], mapped[n:2*n], mapped[2*n:3*n]
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
	p.sum(m.Weight, slot)
	return len(p.total), 0, nil
}

// sum adds what the array has changed by to the total, and copies that to slot, if there is one.
func (p *changes) sum(weight float64, slot []byte) {
	for lo := 0; lo < len(p.total); lo += len(p.room) {
		hi := min(lo+len(p.room), len(p.total))
		now := p.room[:hi-lo]
		reduce.Copy(now, p.m.Data[lo:hi]) // another thread may be changing the array
		reduce.Change(p.runs, lo, p.total[lo:hi], p.total[lo:hi], p.shadow[lo:hi], now, weight*p.share)
		reduce.Copy(p.shadow[lo:hi], now)
		if slot != nil {
			reduce.Copy(slot[lo:hi], p.total[lo:hi])
		}
	}
}

// Fold makes the array start + Σ totals + what has changed since the last scatter. All add
// in the order of ranks: to the same bits, where the totals are the same. Alone the array
// stays as it is.
func (p *changes) Fold(_ reduce.Op, _ float64, us []Update) bool {
	if p.m.Job.Size == 1 {
		return true
	}
	for lo := 0; lo < len(p.total); lo += len(p.room) {
		hi := min(lo+len(p.room), len(p.total))
		p.srcs = append(p.srcs[:0], p.start[lo:hi])
		for r, i := 0, 0; r < len(p.kept); r++ {
			switch come := i < len(us) && us[i].Rank == r; {
			case r == p.m.Job.Rank:
				p.srcs = append(p.srcs, p.total[lo:hi])
			case come:
				p.srcs = append(p.srcs, us[i].Data[lo:hi])
				i++
			case p.counts[r]:
				p.srcs = append(p.srcs, p.kept[r][lo:hi])
			}
		}
		now := p.room[:hi-lo]
		reduce.FoldRuns(reduce.Sum, p.runs, lo, now, p.srcs, nil, 0)
		reduce.Change(p.runs, lo, p.m.Data[lo:hi], now, p.shadow[lo:hi], p.m.Data[lo:hi], 1)
		reduce.Copy(p.shadow[lo:hi], now)
	}
	clear(p.srcs)
	return true
}

// Keep copies the newest total of a rank that can no longer be read where it is.
func (p *changes) Keep(rank int, total []byte) {
	if p.kept[rank] == nil {
		p.kept[rank] = make([]byte, len(p.total))
	}
	reduce.Copy(p.kept[rank], total)
	p.counts[rank] = true
}

// Share adds the last changes to the total.
func (p *changes) Share() []byte {
	p.sum(1, nil)
	return p.total
}

// Settled begins a new era. After a sum of totals the array has those of these ranks; of
// the others the kept ones count.
func (p *changes) Settled(summed []int) {
	if len(summed) > 0 && p.m.Job.Size > 1 {
		first := p.m.Data
		if len(summed) == 1 {
			first = p.total
		}
		p.srcs = append(p.srcs[:0], p.start, first)
		for r, counts := range p.counts {
			if counts && !slices.Contains(summed, r) {
				p.srcs = append(p.srcs, p.kept[r])
			}
		}
		reduce.FoldRuns(reduce.Sum, p.runs, 0, p.m.Data, p.srcs, nil, 0)
		clear(p.srcs)
	}
	reduce.Copy(p.start, p.m.Data)
	reduce.Copy(p.shadow, p.m.Data)
	clear(p.total)
	clear(p.counts)
}

func (p *changes) Close() (err error) {
	if p.mapped != nil {
		err = p.m.Job.T.Unmap(p.mapped)
		p.mapped = nil
	}
	return err
}

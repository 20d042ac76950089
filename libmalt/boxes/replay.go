package boxes

import (
	"malt/internal/say"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/rule"
	"malt/rdma"
)

// taped tells whether gathers may fold other updates in another run of the same program.
func (b *Boxes) taped() bool { return b.Job.Tape != nil && b.ch.mode.Rule.Boxes() == rdma.Newest }

// record notes what a gather has folded.
func (b *Boxes) record() {
	if !b.taped() {
		return
	}
	g := rule.Gathered{uint64(b.ID), b.Clock()}
	for _, u := range b.updates {
		if b.counting.fresh(u.Seq, u.Read) {
			g = append(g, uint64(u.Rank), u.Clock)
		}
	}
	if ends := b.Job.Tape.Record(g); ends != nil {
		b.Warn(core.Trouble{Kind: core.TapeFull, Rank: b.Job.Rank, Why: ends})
	}
	if b.replay != nil {
		b.replay.Gathered()
	}
}

// replayed gets the updates that the recorded gather has folded. A rank that has read one keeps
// a copy, and wakes its sender, which may wait for that: see unread.
func (o *gathering) replayed() (over bool, err error) {
	b := o.b
	next, more := b.replay.Next()
	if !more {
		b.Warn(core.Trouble{Kind: core.TapeEnds, Rank: b.Job.Rank})
		return true, nil
	}
	if next[1] != b.Clock() {
		return false, o.strays("rank %d is at clock %d, and was at %d", b.Job.Rank, b.Clock(), next[1])
	}
	for i := range b.ch.sources {
		src := &b.ch.sources[i]
		clock := next.Of(src.rank)
		if clock == 0 || src.has && src.held.Clock == clock {
			continue
		}
		_, gone := src.inbox.Clock()
		standing, death := b.Job.Standing(src.rank, gone)
		if err := b.counting.take(o, src); err != nil {
			return false, err
		}
		switch verdict := rule.About(standing); {
		case src.has && src.held.Clock == clock:
			src.keep()
			b.Job.Marks.Read()
		case src.has && src.held.Clock > clock:
			return false, o.strays("rank %d is at clock %d, and its update of %d was folded", src.rank, src.held.Clock, clock)
		case verdict == rule.Wait:
			o.late = append(o.late, src.rank)
		case verdict == rule.Fail:
			return false, death
		default:
			return false, o.strays("rank %d has gone on to a collective call, or left, without its clock %d", src.rank, clock)
		}
	}
	return false, nil
}

// strays says that this is another program, or its data are.
func (o *gathering) strays(where string, args ...any) error {
	return say.Errorf(core.ErrMismatch, "%s does not do what it did in the recorded run", o.Name()).
		In(o.Name()).At(where, args...).Try("Replay the same program, with the same ranks, data and random numbers.")
}

// keep makes the held update a copy, and gives it back.
func (s *source) keep() {
	if cap(s.copy) < len(s.held.Data) {
		s.copy = make([]byte, len(s.held.Data))
	}
	s.copy = s.copy[:len(s.held.Data)]
	reduce.Copy(s.copy, s.held.Data)
	s.held.Data = s.copy
	s.inbox.Release(s.held.Seq)
}

// unread appends to late, in a replay, the receivers that have yet to read an update which the
// next one overwrites. One that has gone on without it strays, and says so itself.
func (b *Boxes) unread(late []int) []int {
	for r, seq := range b.needed {
		if seq > b.ch.out.Acked(r) {
			if standing, _ := b.Job.Standing(r, nil); rule.About(standing) == rule.Wait {
				late = append(late, r)
			}
		}
	}
	return late
}

// published notes which receivers need what has just been committed.
func (b *Boxes) published(clock uint64) {
	for r := range b.needed {
		if b.replay.Reads(r, clock) {
			b.needed[r] = b.Head.Load()
		}
	}
}

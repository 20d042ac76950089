package libmalt

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"malt/internal/say"
	"malt/libmalt/consistency"
	"malt/libmalt/reduce"
	"malt/libmalt/spvec"
	"malt/rdma"
)

// Scatter sends the first n bytes to the ranks in to, nil meaning all receivers,
// and returns n times their number. Only notify-ack waits.
func (s *Segment) Scatter(ctx context.Context, n int, to []int) (int, error) {
	if n < 0 || n > len(s.data) {
		return 0, say.Errorf(ErrInvalid, "scatter of %d bytes of %s, which has %d", n, s, len(s.data))
	}
	if s.kind == "vector" && n != len(s.data) {
		return 0, say.Errorf(ErrInvalid, "scatter of %d bytes of %s: a vector is sent as a whole, %d bytes", n, s, len(s.data))
	}
	return s.scatter(ctx, n, nil, to, 1)
}

func (s *Segment) scatter(ctx context.Context, n int, rows []int64, to []int, weight float64) (int, error) {
	op := &s.scattering
	err := s.run(ctx, "scatter", false, op, func() error { return op.begin(s, n, rows, to, weight) })
	if err != nil {
		return 0, err
	}
	return op.n * op.receivers, nil
}

// scattering is a scatter on its way. It waits for room in the queue of
// notify-ack, never in the other modes (G4).
type scattering struct {
	s         *Segment
	n         int
	to        []int // nil: all
	weight    float64
	receivers int
	late      []int
	watch     watch
}

func (o *scattering) begin(s *Segment, n int, rows []int64, to []int, weight float64) error {
	if !(weight >= 0) || weight > maxWeight {
		return say.Errorf(ErrInvalid, "weight=%v: a finite number that is not negative is expected", weight)
	}
	if most := s.mode.consistency.MaxScatters(); most > 0 && s.unfolds >= most {
		return say.Errorf(ErrState, "%s: %d scatters without a gather, and %s allows %d", s.called("scatter"), s.unfolds+1, s.mode.consistency, most).
			In(s.called("scatter")).Try("Call gather() first, or sync(), which does both.")
	}
	*o = scattering{s: s, n: n, weight: weight, late: o.late[:0], watch: o.watch.again()}
	if err := o.address(to); err != nil {
		return err
	}
	return s.nameRows(rows)
}

// address finds out whom the scatter is for.
func (o *scattering) address(to []int) error {
	s := o.s
	if to == nil && !s.mode.graph.Varies() {
		o.receivers = len(s.ch.receivers)
		return nil
	}
	now := s.mode.graph.Receivers(s.w.rank, s.Clock()+1)
	o.receivers = len(now)
	if to == nil {
		o.to = now
		return nil
	}
	when := ""
	if s.mode.graph.Varies() {
		when = fmt.Sprintf(" at clock %d", s.Clock()+1)
	}
	for i, r := range to {
		if !slices.Contains(now, r) {
			return say.Errorf(ErrInvalid, "scatter of %s to rank %d, which is not among its receivers", s, r).
				At("in graph %.40s rank %d sends to %s%s", s.mode.graph, s.w.rank, listed(now), when)
		}
		if slices.Contains(to[:i], r) {
			return say.Errorf(ErrInvalid, "scatter of %s: rank %d is named twice", s, r)
		}
	}
	o.to, o.receivers = append([]int{}, to...), len(to)
	return nil
}

// listed names the only ranks that something is for.
func listed(ranks []int) string {
	words := make([]string, len(ranks))
	for i, r := range ranks {
		words[i] = strconv.Itoa(r)
	}
	switch len(words) {
	case 0:
		return "no rank"
	case 1:
		return "rank " + words[0] + " only"
	}
	return "ranks " + strings.Join(words, ", ") + " only"
}

func (o *scattering) step() (bool, error) {
	done, err := o.advance()
	if done || err != nil {
		o.giveUp()
	}
	return done, err
}

func (o *scattering) advance() (bool, error) {
	s, out := o.s, o.s.ch.out
	if s.mode.consistency.Kind == consistency.NotifyAck {
		if err := s.w.useQueue(s); err != nil {
			return false, err
		}
		defer s.w.leaveQueue()
	}
	s.catchUp()
	if o.late = s.unreduced(o.late[:0]); len(o.late) > 0 {
		o.blocked()
		return false, nil
	}
	if o.late = s.unaware(o.late); len(o.late) > 0 {
		o.blocked()
		return false, nil
	}
	clock := s.Clock() + 1
	if s.shared != nil && s.ch.everyone {
		s.decide(wordDecision, clock, throughBoxes)
	}
	if out != nil {
		b, err := out.Begin()
		for ; b == nil && err == nil; b, err = out.Begin() {
			if err := o.makeRoom(); err != nil {
				return false, err
			}
			if len(o.late) > 0 {
				o.blocked()
				return false, nil
			}
		}
		if err != nil {
			return false, err
		}
		start := time.Now()
		stamp := rdma.Stamp{Clock: clock, Weight: o.weight}
		if s.sparse == nil {
			reduce.Copy(b, s.data[:o.n])
		} else {
			var kind spvec.Kind
			if o.n, kind, err = s.encode(b, o.to); err != nil {
				return false, err
			}
			stamp.Kind = uint16(kind)
		}
		if err := out.Commit(o.n, stamp, o.to); err != nil {
			return false, err
		}
		s.head.Add(1)
		s.stats.ScatterTime += time.Since(start)
	}
	if s.ch.clock != nil {
		if err := s.ch.clock.Advance(clock); err != nil {
			return false, err
		}
	}
	s.clock.Store(clock)
	s.changed()
	s.unfolds++
	s.void = false
	s.weight = o.weight
	s.stats.Scatters++
	o.count()
	return true, nil
}

// unaware are the receivers that do not know yet that this rank takes part again,
// after a collective call that it has given up. One that gathered without it,
// and with an update of a rank that has folded the one to come, would be behind
// this rank and ahead of the other, and all three would wait for each other. (If
// that is a rank that gathered before it could know, all are in step.)
func (s *Segment) unaware(late []int) []int {
	if !s.back {
		return late
	}
	for _, r := range s.ch.receivers {
		if !s.w.marks.Heard(r) {
			late = append(late, r)
		}
	}
	s.back = len(late) > 0
	return late
}

func (o *scattering) blocked() {
	o.s.w.note(inScatter, o.s.id, o.s.Clock())
	o.watch.blocked(o.s, o.late)
}

// makeRoom looks at the receivers that have not acknowledged the update whose
// slot is needed. late are those that still will; one that is away will see no
// update older than its next collective, so it need not.
func (o *scattering) makeRoom() error {
	s := o.s
	o.late = o.late[:0]
	oldest := s.head.Load() + 1 - s.mode.consistency.N
	for _, r := range s.ch.receivers {
		if s.ch.out.Acked(r) >= oldest {
			continue
		}
		away, err := s.w.isAway(r)
		dead := deathIn(err)
		switch {
		case dead != nil:
			return dead
		case err != nil || away:
			s.ch.out.Excuse(r)
		default:
			o.late = append(o.late, r)
		}
	}
	return nil
}

// count books what was sent.
func (o *scattering) count() {
	to := o.to
	if to == nil {
		to = o.s.ch.receivers
	}
	for _, r := range to {
		e := &o.s.stats.Edges[r]
		e.SentMessages++
		e.SentBytes += uint64(o.n)
	}
}

func (o *scattering) suspend() { o.watch.end(o.s) }

func (o *scattering) call() string { return o.s.called("scatter") }

func (o *scattering) waiting() wait {
	w := o.s.waiting(o.call(), o.late)
	w.whom += " to fold an earlier update"
	return w
}

func (o *scattering) giveUp() {
	o.watch.end(o.s)
	o.s.w.note(inCompute, o.s.id, o.s.Clock())
}

const maxWeight = 1e300

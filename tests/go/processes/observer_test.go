package processes

import (
	"fmt"
	"slices"

	"malt/libmalt"
	"malt/libmalt/reduce"
	"malt/libmalt/rule"
)

// observer holds what one rank receives against the guarantees. It knows the
// plan, so in bsp and notify-ack, where nothing may be lost, it knows exactly
// which updates each gather has to give.
type observer struct {
	*planPhase
	me   int
	base uint64   // clock at which the phase began
	turn uint64   // gathers in this phase
	last []uint64 // by sender: clock of the newest update that was taken, or counts as seen
	prev *observer

	// without tells that a rank may never take part in the phase: when a rank
	// dies while the phase is made ready, that can fail on some and succeed on
	// others, to which the former look like ranks that have closed the object.
	// nil: all take part.
	without func(rank int) bool
}

// observe is the observer of rank me for phase i, after that of the phase before.
func (p *plan) observe(me, i int, before *observer) *observer {
	o := &observer{planPhase: &p.phases[i], me: me, base: p.base(i), last: make([]uint64, p.ranks)}
	for r := range o.last {
		o.last[r] = o.base
	}
	if before != nil && p.phases[i-1].leavesUnseen() {
		o.prev = before
		copy(o.last, before.last)
	}
	return o
}

// leavesUnseen tells whether updates of this phase can be folded in the next:
// where they may be overwritten, unless a collective call gave the object new
// values or new boxes.
func (ph *planPhase) leavesUnseen() bool {
	return ph.overwrites() && !ph.renews()
}

// renews tells whether one of these calls ends the phase.
func (ph *planPhase) renews() bool {
	return slices.ContainsFunc(ph.then, func(c collective) bool { return c.renews() })
}

// overwrites tells whether a newer update may take the place of one unseen.
func (ph *planPhase) overwrites() bool {
	return ph.mode.Kind == rule.Async || ph.mode.Kind == rule.SSP
}

// wasMeant tells whether there was a scatter of that clock for this rank, in this
// phase or in one whose updates can still be folded.
func (o *observer) wasMeant(sender int, clock uint64) bool {
	if clock <= o.base && o.prev != nil {
		return o.prev.wasMeant(sender, clock)
	}
	return o.meant(sender, o.base, clock, o.me)
}

// check is called for each gather that takes updates; read decodes their
// contents. own is the reader's clock.
func (o *observer) check(own uint64, us []libmalt.Update, read func([]byte) (float64, bool, error)) error {
	o.turn++
	if err := o.checkSet(own, us); err != nil {
		return err
	}
	for _, u := range us {
		if err := o.checkOne(own, u); err != nil {
			return err
		}
		if err := checkPayload(u, read); err != nil {
			return err
		}
		o.last[u.Rank] = u.Clock
	}
	return nil
}

// checkPayload: G3, an update is whole and what its header says.
func checkPayload(u libmalt.Update, read func([]byte) (float64, bool, error)) error {
	x, ok, err := read(u.Data)
	if err != nil {
		return fmt.Errorf("G3: update of rank %d clock %d: %w", u.Rank, u.Clock, err)
	}
	if want := value(u.Rank, u.Clock); ok && x != want {
		return fmt.Errorf("G3: update of rank %d clock %d holds %s", u.Rank, u.Clock, decoded(x))
	}
	return nil
}

// checkOne holds an update's header against what its sender did.
func (o *observer) checkOne(own uint64, u libmalt.Update) error {
	switch {
	case u.Clock <= o.base && o.prev == nil:
		return fmt.Errorf("clock %d of rank %d folded in a phase that began at clock %d: it counts as seen", u.Clock, u.Rank, o.base)
	case u.Clock <= o.last[u.Rank]:
		return fmt.Errorf("G2: clock %d of rank %d folded after clock %d", u.Clock, u.Rank, o.last[u.Rank])
	case !o.wasMeant(u.Rank, u.Clock):
		return fmt.Errorf("clock %d of rank %d folded, which was not for this rank", u.Clock, u.Rank)
	case o.mode.Kind == rule.SSP && u.Clock+o.mode.N < own:
		return fmt.Errorf("G7: clock %d of rank %d folded at clock %d with slack %d", u.Clock, u.Rank, own, o.mode.N)
	case u.Age != int64(own)-int64(u.Clock):
		return fmt.Errorf("clock %d of rank %d at clock %d has age %d", u.Clock, u.Rank, own, u.Age)
	}
	return nil
}

// checkSet: G2, exactly once where the mode does not allow overwriting.
func (o *observer) checkSet(own uint64, us []libmalt.Update) error {
	clock, want, exact := o.expected(own) // after the gather: who sent has begun the phase
	var got []int
	for _, u := range us {
		if got = append(got, u.Rank); exact && u.Clock != clock {
			return fmt.Errorf("G2: %s: gather %d of the phase, at clock %d, gives clock %d of rank %d, expected clock %d", o.mode, o.turn, own, u.Clock, u.Rank, clock)
		}
	}
	if !slices.IsSorted(got) || len(slices.Compact(slices.Clone(got))) != len(got) {
		return fmt.Errorf("updates come from ranks %v: each once, in order, is expected", got)
	}
	if exact && !slices.Equal(got, want) {
		return fmt.Errorf("G2: %s: gather %d of the phase, at clock %d, has updates from ranks %v, expected %v", o.mode, o.turn, own, got, want)
	}
	return nil
}

// expected are the clock and the senders of the updates that this gather has to
// give; not exact in the overwriting modes.
func (o *observer) expected(own uint64) (clock uint64, senders []int, exact bool) {
	switch o.mode.Kind {
	case rule.BSP:
		clock = own
	case rule.NotifyAck:
		clock = o.base + o.turn
	default:
		return 0, nil, false
	}
	for r := range o.ops {
		if r != o.me && o.meant(r, o.base, clock, o.me) && (o.without == nil || !o.without(r)) {
			senders = append(senders, r)
		}
	}
	return clock, senders, true
}

// checkFold holds the result of a fold against the operands, as far as they are
// known: not, in the overwriting modes, which there were.
func (o *observer) checkFold(kind opKind, own uint64, n int, x float64) error {
	o.turn++
	clock, senders, exact := o.expected(own)
	if exact && n != len(senders) {
		return fmt.Errorf("G2: %s: gather %d of the phase folded %d updates, expected those of ranks %v", o.mode, o.turn, n, senders)
	}
	mine := value(o.me, own)
	if n == 0 {
		if x != mine {
			return fmt.Errorf("nothing was folded and the vector holds %s", decoded(x))
		}
		return nil
	}
	if exact {
		want, known := combine(kind, mine, weight(o.me, own), senders, clock)
		if known && x != want {
			return fmt.Errorf("fold %d of ranks %v at clock %d gives %v, expected %v", kind, senders, clock, x, want)
		}
		return nil
	}
	if kind == foldMax || kind == foldReplace {
		if x == mine && kind == foldMax {
			return nil
		}
		rank, clock := int(uint64(x)>>18), uint64(x)&(1<<18-1)
		if x != value(rank, clock) || rank >= len(o.ops) || clock <= o.last[rank] || !o.wasMeant(rank, clock) {
			return fmt.Errorf("fold %d gives %s, which was not folded here", kind, decoded(x))
		}
		if o.mode.Kind == rule.SSP && clock+o.mode.N < own {
			return fmt.Errorf("G7: clock %d of rank %d folded at clock %d with slack %d", clock, rank, own, o.mode.N)
		}
		o.last[rank] = clock
	}
	return nil
}

// combine is the fold of the values of senders at that clock with the own one.
func combine(kind opKind, mine, own float64, senders []int, clock uint64) (x float64, known bool) {
	switch x = mine; kind {
	case foldSum:
		for _, s := range senders {
			x += value(s, clock)
		}
	case foldMax:
		for _, s := range senders {
			x = max(x, value(s, clock))
		}
	case foldReplace:
		x = value(senders[0], clock) // all of one clock: the lowest rank's
	default: // a mean depends on the type of the elements
		return 0, false
	}
	return x, true
}

// mean is the result of a fold with mean in elements of that type: of the values
// of senders at clock and the own one at own, added in the order of ranks.
func (o *observer) mean(dt libmalt.DType, own uint64, senders []int, clock uint64) float64 {
	var operands [][]byte
	var weights []float64
	for r := range o.ops {
		at := clock
		if r == o.me {
			at = own
		} else if !slices.Contains(senders, r) {
			continue
		}
		operand := make([]byte, dt.Size())
		fill(operand, dt.Size(), value(r, at))
		operands, weights = append(operands, operand), append(weights, weight(r, at))
	}
	result := make([]byte, dt.Size())
	reduce.Fold(reduce.Mean, dt, result, operands, weights)
	x, _, _ := constant(result, dt.Size())
	return x
}

package processes

import (
	"context"
	"fmt"
	"strings"

	"malt/libmalt/rule"
	"malt/rdma"
)

// goOn: after a death, calls that do not wait succeed.
func (x *runner) goOn(v *verdict) {
	if x.obs == nil || x.closed || x.obs.mode.Boxes() != rdma.Newest ||
		!strings.Contains(x.obj.s.Describe(), x.obs.mode.String()) { // configured for the next phase already
		return
	}
	if err := x.obj.send(context.Background(), []int{}); err != nil { // to nobody: it is not in the plan
		v.Outcome, v.Text = failure, fmt.Sprintf("scatter in %s after the death (%s): %v", x.obs.mode, v.Text, err)
		return
	}
	x.tally.add("scatters after a death", 1)
	if x.obs.mode.Kind == rule.Async {
		if _, err := x.obj.s.Begin(context.Background()); err != nil {
			v.Outcome, v.Text = failure, fmt.Sprintf("gather in async after the death (%s): %v", v.Text, err)
			return
		}
		_ = x.obj.s.End(true)
	}
}

// finish is the end of the last phase.
func (x *runner) finish() error {
	switch {
	case x.plan.end == desert && x.me() != x.plan.chosen:
		err := x.together("barrier that one rank does not come to", x.w.Barrier)
		if err == nil {
			err = fmt.Errorf("a barrier succeeded without rank %d, which has left", x.plan.chosen)
		}
		return err
	case x.plan.end == stay && x.me() == x.plan.chosen:
		if err := x.report(verdict{Outcome: fine}); err != nil {
			return err
		}
		x.set(activity, int(idle))
		if _, err := x.order(); err != nil { // the others have gone
			return err
		}
		x.set(activity, int(computing))
		return x.takeRest()
	case x.plan.end == shut:
		if err := x.checkStats(); err != nil {
			return err
		}
		x.closed = true
		if err := x.obj.s.Close(); err != nil {
			return err
		}
		return x.together("barrier after closing the object", x.w.Barrier)
	case x.plan.end == apart || x.plan.end == stay:
		x.tally.add("early leaves", 1)
	}
	return x.checkStats()
}

// takeRest: what was sent before its sender left is not lost.
func (x *runner) takeRest() error {
	o := x.obs
	switch o.mode.Kind {
	case rule.BSP:
		return nil
	case rule.NotifyAck: // every gather takes one of each
		most := uint64(0)
		for r := range o.ops {
			most = max(most, uint64(o.scatters(r)))
		}
		for o.turn < most {
			if err := x.look(false); err != nil {
				return err
			}
		}
		return nil
	}
	if err := x.look(false); err != nil {
		return err
	}
	own := x.obj.s.Clock()
	for r := range o.ops {
		if last := o.lastFor(r); r != o.me && o.mode.Takes(own, last) && o.last[r] < last && !x.blind() {
			return fmt.Errorf("%s: all others have left; the last update of rank %d for this one was clock %d, the last folded is %d", o.mode, r, last, o.last[r])
		}
	}
	return nil
}

// blind: some folds do not tell which updates they took.
func (x *runner) blind() bool {
	for _, o := range x.obs.ops[x.me()] {
		if o.kind != scatter && o.kind != look && o.kind != lookTwice && !x.obj.segment() {
			return true
		}
	}
	return x.obj.size() == 0
}

// lastFor is the clock of a sender's last update for this rank.
func (o *observer) lastFor(sender int) (clock uint64) {
	for c := o.base + 1; c <= o.base+uint64(o.scatters(sender)); c++ {
		if o.meant(sender, o.base, c, o.me) {
			clock = c
		}
	}
	return clock
}

// leave closes everything in good order.
func (x *runner) leave(outcome string) error {
	if x.w == nil {
		return nil
	}
	memory := x.memory
	if x.obj != nil && x.obj.s != nil {
		if b := x.obj.s.Bytes(); cap(b) > 0 {
			memory = append(memory, &b[:1][0])
		}
	}
	err := x.w.Close()
	for _, first := range memory {
		if err == nil {
			err = x.w.Unmap(first)
		}
	}
	return err
}

package processes

import (
	"fmt"
	"math"

	"malt/libmalt/rule"
)

// sentTo counts the plan's updates of a sender for a reader in this phase.
func (o *observer) sentTo(sender, reader int) (n uint64) {
	for c := o.base + 1; c <= o.base+uint64(o.scatters(sender)); c++ {
		if o.meant(sender, o.base, c, reader) {
			n++
		}
	}
	return n
}

// checkStats holds the object's own counts against the plan, which this rank
// has followed to its end. What was sent is known exactly. In bsp and notify-ack
// so is what the gathers have given. In the other modes all that was meant for
// this rank has been folded or overwritten, but for the newest, which may still
// be folded, and for what is still to come while others have not finished.
func (x *runner) checkStats() error {
	st, err := x.obj.s.Stats()
	if err != nil {
		return err
	}
	last := len(x.plan.phases) - 1
	for r := range st.Edges {
		var sent, meant uint64
		slack := uint64(0)
		for i := range x.plan.phases {
			o := x.plan.observe(x.me(), i, nil)
			sent += o.sentTo(x.me(), r)
			switch o.mode.Kind {
			case rule.BSP, rule.NotifyAck:
				meant += o.givenBy(r)
			default:
				meant += o.sentTo(r, x.me())
				if i == last && x.plan.end != together {
					slack = math.MaxUint64
				} else if i == last && o.leavesUnseen() {
					slack = 1
				}
			}
		}
		e := st.Edges[r]
		if e.SentMessages != sent {
			return fmt.Errorf("statistics: %d updates sent to rank %d, expected %d", e.SentMessages, r, sent)
		}
		if got := e.FoldedMessages + e.Overwritten; got > meant || meant-got > slack {
			return fmt.Errorf("statistics: %d updates of rank %d folded, %d overwritten; expected %d together", e.FoldedMessages, r, e.Overwritten, meant)
		}
	}
	if got := st.Scatters; got != uint64(x.page.at(x.me(), scatters).Load()) {
		return fmt.Errorf("statistics: %d scatters, expected %d", got, x.page.at(x.me(), scatters).Load())
	}
	return nil
}

// givenBy counts the updates of a sender that this rank's gathers give in bsp or
// notify-ack.
func (o *observer) givenBy(sender int) (n uint64) {
	own := o.base
	for _, p := range o.ops[o.me] {
		if p.kind == scatter || p.kind == syncAll {
			own++
		}
		if p.kind != scatter {
			o.turn++
			_, senders, _ := o.expected(own)
			for _, s := range senders {
				if s == sender {
					n++
				}
			}
		}
	}
	return n
}

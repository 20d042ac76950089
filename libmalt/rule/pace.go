package rule

import "time"

const (
	// PaceWindow is how long a reader and a sender are compared for. In a shorter time a rank
	// that saves or evaluates its model looks slow.
	PaceWindow = 30 * time.Second
	// PaceClocks is how often a reader looks, and how many clocks it has to have made.
	PaceClocks = 16
)

// Pace is how far a reader and one of its senders were when a window began. The zero value
// begins one at the first look.
type Pace struct {
	Since        time.Time
	Own, Senders uint64
}

// Slow tells, at the end of a window, whether the sender has made less than half as many clocks
// as the reader, which nothing bounds in async. Then or at the end p begins the next.
func (p *Pace) Slow(now time.Time, own, senders uint64) (in Pace, over time.Duration, slow bool) {
	in, over = Pace{p.Since, own - p.Own, senders - p.Senders}, now.Sub(p.Since)
	if !p.Since.IsZero() && (over < PaceWindow || in.Own < PaceClocks) {
		return in, over, false
	}
	slow = !p.Since.IsZero() && 2*in.Senders < in.Own
	*p = Pace{now, own, senders}
	return in, over, slow
}

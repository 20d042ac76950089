package processes

import (
	"errors"
	"fmt"

	"malt/libmalt/rule"
)

// inquest is the judge of a schedule that ranks survive. It has what each rank noted, the
// dead ones up to the moment of their deaths, and simulates from that who takes part in
// each step and call, and with which result. Of a call in which a rank died the notes do
// not tell whether it came about for the others. Then they must agree.
type inquest struct {
	*plan
	logs    [][]event
	fell    []bool
	sends   []map[uint64]*event  // by sender and clock
	turns   map[[2]int][]*event  // by sender and phase: the same, in order
	arrived map[landing]bool     // whether a scatter in which its rank died came about
	bits    map[agreement]uint64 // the result of a step
	views   map[uint64]uint64    // members, by generation
	tally   tally
}

// landing is a scatter, by sender and clock, as the readers in a phase have it: once those that made
// more steps have died, the next phase may begin at a clock of theirs.
type landing struct {
	rank  int
	clock uint64
	phase int64
}

// agreement is a step and the fold, of these operands, that all have to agree on.
type agreement struct {
	clock    uint64
	op       int64
	operands uint64
}

// judgeSurvivors holds the notes of all ranks against each other.
func judgeSurvivors(p *plan, logs [][]event, fell []bool, t tally) error {
	q := &inquest{
		plan: p, logs: logs, fell: fell, turns: map[[2]int][]*event{},
		arrived: map[landing]bool{}, bits: map[agreement]uint64{}, views: map[uint64]uint64{}, tally: t,
	}
	for _, log := range logs {
		for i := range log {
			if log[i].Generation > 0 {
				q.views[log[i].Generation] = log[i].Members
			}
		}
	}
	for r := range logs {
		q.sends = append(q.sends, map[uint64]*event{})
		for i := range logs[r] {
			if e := &logs[r][i]; e.Kind == scattered || e.Kind == synced {
				at := [2]int{r, int(e.Phase)}
				q.sends[r][e.Clock], q.turns[at] = e, append(q.turns[at], e)
			}
		}
	}
	errs := []error{q.judgeViews(), q.judgeCalls(), q.judgeOut()}
	for r := range logs {
		if err := q.judgeSteps(r); err != nil {
			errs = append(errs, fmt.Errorf("rank %d: %w", r, err))
		}
	}
	return errors.Join(errs...)
}

// judgeViews: a generation has one set of members for all; it grows; only the dead are left
// out.
func (q *inquest) judgeViews() error {
	everyone := uint64(1)<<q.ranks - 1
	known := map[uint64]uint64{1: everyone}
	for r, log := range q.logs {
		last := uint64(1)
		for _, e := range log {
			if e.Ended == 0 || e.Kind == done {
				continue
			}
			if e.Generation < last {
				return fmt.Errorf("rank %d goes from generation %d back to %d", r, last, e.Generation)
			}
			last = e.Generation
			if m, there := known[last]; there && m != e.Members {
				return fmt.Errorf("rank %d has members %v in generation %d, another rank %v", r, ranksOf(e.Members), last, ranksOf(m))
			}
			known[last] = e.Members
			for _, out := range ranksOf(everyone &^ e.Members) {
				if !q.fell[out] {
					return fmt.Errorf("rank %d goes on without rank %d, which lives", r, out)
				}
			}
		}
	}
	q.tally.add("views", len(known))
	return nil
}

func (ph *planPhase) queues() bool { return ph.mode.Kind == rule.NotifyAck }

package processes

import (
	"fmt"
	"slices"

	"malt/libmalt/rule"
)

// witness is what the judge knows of one rank while it goes through its notes.
type witness struct {
	*inquest
	me    int
	phase int64
	turn  int      // gathers in the phase
	last  []uint64 // by sender: clock of the newest update that was folded
	blind int64    // when a fold last ended that did not tell what it folded
	stale []bool   // by sender: there has been one since last was seen
}

// judgeSteps goes through the scatters and gathers of a rank.
func (q *inquest) judgeSteps(rank int) error {
	w := &witness{inquest: q, me: rank, last: make([]uint64, q.ranks), stale: make([]bool, q.ranks)}
	for i := range q.logs[rank] {
		e := &q.logs[rank][i]
		if e.Phase != w.phase {
			w.phase, w.turn = e.Phase, 0
		}
		if e.Ended == 0 || e.Kind == called || e.Kind == void || e.Kind == done || e.Kind == confirmed {
			continue
		}
		if err := w.judge(e); err != nil {
			return fmt.Errorf("phase %d, %s, %s, at clock %d: %w", e.Phase, q.phases[e.Phase-1].mode, q.phases[e.Phase-1].graph, e.Clock, err)
		}
	}
	return nil
}

func (w *witness) judge(e *event) error {
	ph := &w.phases[e.Phase-1]
	if ph.queues() && (e.Kind == scattered || e.Kind == synced) {
		if err := w.judgeAhead(e, ph); err != nil {
			return err
		}
	}
	if e.Kind == scattered {
		return nil
	}
	w.turn++
	switch {
	case ph.overwrites() && e.Kind == looked:
		if err := w.judgeNewest(e, ph); err != nil {
			return err
		}
		return w.judgeWait(e, ph)
	case ph.overwrites():
		w.judgeBlind(e)
		return w.judgeWait(e, ph)
	case e.Kind == looked:
		return w.judgeExact(e, ph)
	}
	return w.judgeFold(e, ph)
}

// due is what the gather e has to give, where nothing is overwritten: of which senders it
// must have an update, and of which it may; and the scatters. Who died in a scatter
// may have come through it or not.
func (w *witness) due(e *event, ph *planPhase) (must, may uint64, from []*event) {
	from = make([]*event, w.ranks)
	for s := range w.ranks {
		var sent *event
		if !ph.queues() {
			sent = w.sends[s][e.Clock]
		} else if all := w.turns[[2]int{s, int(e.Phase)}]; w.turn <= len(all) {
			sent = all[w.turn-1]
		}
		if s == w.me || sent == nil || sent.Exact && !has(sent.To, w.me) {
			continue
		}
		from[s] = sent
		if sent.Exact && w.certain(sent, e) && !w.perhaps(s, ph) {
			must |= 1 << s
		} else {
			may |= 1 << s
		}
	}
	return must, may, from
}

// far tells whether two ranks are on different hosts. An update of one comes to the other
// later, and if it dies meanwhile perhaps never.
func (p *plan) far(a, b int) bool { return p.weather != nil && p.places[a] != p.places[b] }

// perhaps tells whether an update of a rank that died may not count, though it was sent: on
// several hosts. In lock-step it counts for all readers if one had folded it, or for none.
func (w *witness) perhaps(s int, ph *planPhase) bool {
	return w.fell[s] && w.weather != nil && (!ph.queues() || w.far(s, w.me))
}

// certain tells whether sent has come about before e. A rank that dies may be a phase
// behind, and its clock one of the next phase.
func (w *witness) certain(sent, e *event) bool { return sent.Ended != 0 && sent.Phase == e.Phase }

// forAll tells whether an update that one reader has folded counts for all of them. One for some
// ranks, which only its sender knows, counts on several hosts where it had arrived.
func (q *inquest) forAll(sent *event) bool {
	return sent.Exact && !q.phases[sent.Phase-1].queues() && !(sent.Named && q.weather != nil)
}

// buried tells whether nobody who lives can know what this rank has folded: all ranks of its host died.
func (w *witness) buried() bool {
	for r := range w.ranks {
		if w.weather == nil || !w.far(r, w.me) && !w.fell[r] {
			return false
		}
	}
	return true
}

// agrees tells whether it can be that the update of a scatter has been folded, or not.
// Ranks that this scatter is for in any case must find the same.
func (w *witness) agrees(s int, sent *event, got bool) bool {
	if !w.forAll(sent) || w.buried() {
		return true
	}
	before, known := w.arrived[landing{s, sent.Clock, w.phase}]
	return !known || before == got
}

func (w *witness) settle(s int, sent *event, got bool) {
	if !w.forAll(sent) || w.buried() {
		return
	}
	if _, known := w.arrived[landing{s, sent.Clock, w.phase}]; !known {
		w.arrived[landing{s, sent.Clock, w.phase}] = got
		w.tally.add(map[bool]string{true: "ranks that died in a step and count", false: "ranks that died in a step and do not count"}[got], 1)
	}
}

// judgeExact: G2, exactly once; and G3.
func (w *witness) judgeExact(e *event, ph *planPhase) error {
	must, may, from := w.due(e, ph)
	for s := range w.ranks {
		clock := e.Folded[s]
		if ph.queues() && w.isNew(s, w.me, e, ph) {
			if clock != 0 {
				if err := w.judgeNext(s, e, ph); err != nil {
					return err
				}
			}
			continue
		}
		switch {
		case has(must, s) && clock != from[s].Clock:
			return fmt.Errorf("G2: gather %d has clock %d of rank %d, expected clock %d", w.turn, clock, s, from[s].Clock)
		case !has(must|may, s) && clock != 0:
			return fmt.Errorf("G2: gather %d has clock %d of rank %d, expected none", w.turn, clock, s)
		case has(may, s) && clock != 0 && clock != from[s].Clock:
			return fmt.Errorf("G2: gather %d has clock %d of rank %d, expected %d or none", w.turn, clock, s, from[s].Clock)
		case has(may, s) && !w.agrees(s, from[s], clock != 0):
			return fmt.Errorf("G8: rank %d died in the scatter at clock %d: it is folded: %v, and by others: %v", s, from[s].Clock, clock != 0, clock == 0)
		case has(may, s):
			w.settle(s, from[s], clock != 0)
		}
		if clock != 0 {
			if err := w.judgeUpdate(s, e, ph); err != nil {
				return err
			}
		}
	}
	return nil
}

// isNew tells whether in some view, up to that of e, a rank does not send to another: then the
// edge between them has begun with a death, or has ended and may begin again. It is not known
// with which update of a queue.
func (q *inquest) isNew(from, to int, e *event, ph *planPhase) bool {
	return !slices.Contains(ph.graph.AllReceivers(from), to) || q.ended(from, to, 2, e.Generation, ph)
}

// ended tells whether in some view between these two a rank does not send to another, as far as is known.
func (q *inquest) ended(from, to int, generation, last uint64, ph *planPhase) bool {
	for ; generation <= last; generation++ {
		members, noted := q.views[generation]
		switch {
		case !noted: // no rank has come out of a call with it
			return ph.graph.String() != "all"
		case !has(members, from) || !has(members, to):
		case !slices.Contains(ph.graph.Among(ranksOf(members)).AllReceivers(from), to):
			return true
		}
	}
	return false
}

// judgeNext: of such a sender nothing is left out between two updates on the same edge. Where that has
// ended and begun again, a gather in between counts the update that it would have taken.
func (w *witness) judgeNext(s int, e *event, ph *planPhase) error {
	for _, sent := range w.turns[[2]int{s, int(e.Phase)}] {
		before := w.sends[s][w.last[s]]
		if !w.stale[s] && before != nil && before.Phase == e.Phase && !w.ended(s, w.me, max(before.Seen, 2), e.Generation, ph) && sent.Exact && has(sent.To, w.me) && w.last[s] < sent.Clock && sent.Clock < e.Folded[s] {
			return fmt.Errorf("G2: clock %d of rank %d folded after clock %d, and clock %d was left out", e.Folded[s], s, w.last[s], sent.Clock)
		}
	}
	return w.judgeUpdate(s, e, ph)
}

// judgeUpdate: an update is one that was sent to this rank, as it was sent, and newer than
// the one before.
func (w *witness) judgeUpdate(s int, e *event, ph *planPhase) error {
	clock := e.Folded[s]
	sent := w.sends[s][clock]
	switch {
	case sent == nil:
		return fmt.Errorf("clock %d of rank %d folded, which was never sent", clock, s)
	case sent.Exact && !has(sent.To, w.me):
		return fmt.Errorf("clock %d of rank %d folded, which was for ranks %v", clock, s, ranksOf(sent.To))
	case clock <= w.last[s]:
		return fmt.Errorf("G2: clock %d of rank %d folded after clock %d", clock, s, w.last[s])
	case sent.Sum != e.Sums[s]:
		return fmt.Errorf("G3: clock %d of rank %d is not what was sent: sum %x, expected %x", clock, s, e.Sums[s], sent.Sum)
	case sent.Began > e.Ended:
		return fmt.Errorf("clock %d of rank %d folded before it was sent", clock, s)
	case ph.mode.Kind == rule.SSP && clock+ph.mode.N < e.Clock:
		return fmt.Errorf("G7: clock %d of rank %d folded with slack %d", clock, s, ph.mode.N)
	case w.seenBetween(sent.Phase, e.Phase) || ph.queues() && sent.Phase != e.Phase:
		return fmt.Errorf("clock %d of rank %d, of phase %d, folded: it counts as seen", clock, s, sent.Phase)
	}
	w.last[s], w.stale[s] = clock, false
	if w.fell[s] && !has(e.Members, s) {
		w.tally.add("updates folded after their sender was left out", 1)
	}
	return nil
}

// seenBetween tells whether a call at the end of one of these phases gave the object new
// values or new boxes.
func (q *inquest) seenBetween(from, to int64) bool {
	for i := from; i < to; i++ {
		if q.phases[i-1].renews() {
			return true
		}
	}
	return false
}

// judgeNewest: what is folded is in order, and not older than what had been sent when the
// gather began, by a rank that has died since, too.
func (w *witness) judgeNewest(e *event, ph *planPhase) error {
	for s := range w.ranks {
		if e.Folded[s] != 0 {
			if err := w.judgeUpdate(s, e, ph); err != nil {
				return err
			}
		}
		for clock, sent := range w.sends[s] {
			if s != w.me && !w.far(s, w.me) && sent.Ended != 0 && sent.Ended < e.Began && sent.Began > w.blind && sent.Exact && has(sent.To, w.me) &&
				clock > w.last[s] && ph.mode.Takes(e.Clock, clock) && !w.seenBetween(sent.Phase, e.Phase) {
				return fmt.Errorf("G2: clock %d of rank %d had been sent, and clock %d is the last folded", clock, s, w.last[s])
			}
		}
	}
	return nil
}

// judgeBlind: a fold does not tell what it has folded.
func (w *witness) judgeBlind(e *event) {
	w.blind = e.Ended
	for s := range w.stale {
		w.stale[s] = true
	}
}

// judgeWait: G7, a gather does not return before the senders that live are as far as the
// slack asks, unless they are elsewhere.
func (w *witness) judgeWait(e *event, ph *planPhase) error {
	if ph.mode.Kind != rule.SSP || ph.graph.Varies() || e.Seen != e.Generation || e.Clock <= ph.mode.N {
		return nil
	}
	for _, s := range ph.graph.Among(ranksOf(e.Members)).AllSenders(w.me) {
		if !w.fell[s] && !w.elsewhere(s, e) && !slices.ContainsFunc(w.logs[s], func(o event) bool {
			return o.Began < e.Ended && o.Clock+ph.mode.N >= e.Clock && o.Kind != looked && o.Kind != folded
		}) {
			return fmt.Errorf("G7: a gather has not waited for rank %d", s)
		}
	}
	return nil
}

// elsewhere tells whether a rank was in a collective call, or done, while another was in e.
func (q *inquest) elsewhere(rank int, e *event) bool {
	return slices.ContainsFunc(q.logs[rank], func(o event) bool {
		return (o.Kind == called && (o.Ended == 0 || o.Ended > e.Began) || o.Kind == done) && o.Began < e.Ended
	})
}

// judgeAhead: in notify-ack scatter n returns when each receiver that lives has folded
// n-d.
func (w *witness) judgeAhead(e *event, ph *planPhase) error {
	if !e.Exact {
		return nil
	}
	n := slices.Index(w.turns[[2]int{w.me, int(e.Phase)}], e) + 1
	for _, r := range ranksOf(e.To) {
		if n <= int(ph.mode.N) || w.fell[r] || w.elsewhere(r, e) || w.isNew(w.me, r, e, ph) {
			continue
		}
		turn := 0
		if !slices.ContainsFunc(w.logs[r], func(o event) bool {
			if o.Phase == e.Phase && (o.Kind == looked || o.Kind == folded || o.Kind == synced) {
				turn++
			}
			return turn >= n-int(ph.mode.N) && o.Began < e.Ended
		}) {
			return fmt.Errorf("scatter %d has not waited for rank %d", n, r)
		}
	}
	return nil
}

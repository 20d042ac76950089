//go:build explore

package vote

import (
	"fmt"
	"slices"
	"time"

	"malt/internal/explore"
)

// most is the largest number of hosts of a case, and of generations.
const most = 5

// game is a case: hosts that vote, over a network on which everything that was ever sent may
// arrive, at any time, often, or never. So frames are lost, late, repeated and overtake each
// other. A host dies at any step.
//
// Where safety is judged, any host proposes at any time, and suspects whom it likes: what is
// right then is right whatever clocks and doubts say. Where it is judged whether votes end
// (ends), hosts go by what they see, and frames pass only between hosts that can talk.
type game struct {
	hosts       int
	ballots     []int    // how many each host may take
	suspects    [][]int  // which sets it may suspect, as bits; nil: all
	from        []uint64 // the first view that each proposes to replace; nil: any
	generations uint64   // the last one that is voted on
	kills       int
	leaves      []int // hosts whose ranks may leave in good order
	promise     []int // hosts that have promised to the last one, and have left
	lies        int   // refusals that come from a firewall: a host that lives is taken for dead
	asks        []int // how many questions each host may ask
	late        bool  // answers stay on their way, also those that are not to be heeded any more
	ends        bool
	restless    bool     // hosts propose without a suspect, as after the death of a rank of theirs
	cuts        [][2]int // pairs that may be cut, and perhaps heal
	heals       bool
	rankless    bool // the last host has no rank
	limit       int

	job      Job
	messages []sent
	ids      map[string]uint16 // by what stands in its frame
	body     []byte
	gone     *host // that is dead
}

// sent is a message on its way; to is -1 where any host may get it.
type sent struct {
	m        Message
	from, to int
}

// world is a state.
type world struct {
	host  [most]*host // changed by own alone
	net   []uint16    // that was sent; ascending
	past  *past
	kills int
	lies  int
	cut   uint64 // bits of pairs
	bad   string
}

// past is what is remembered so as to judge: what was decided on each generation, and who
// has promised.
type past struct {
	decided [most]Members
	vowed   [most]Set
}

// own makes host h one that may be changed.
func (w *world) own(h int) *host {
	me := *w.host[h]
	w.host[h] = &me
	return &me
}

// vow notes that host h promises.
func (w *world) vow(hosts int, generation uint64, h int) {
	before := w.past.vowed[generation-1]
	if before == nil {
		before = NewSet(hosts)
	}
	if !before.Has(h) {
		now := *w.past
		now.vowed[generation-1] = before.With(h)
		w.past = &now
	}
}

type host struct {
	dead     bool // or has left
	left     bool
	farewell uint64 // once it has
	view     View
	acceptor Acceptor
	see      Sight
	ballots  int // left
	asks     int
	proposal *Proposal
	question *Question
	tainted  bool // when it asked, others had gone on without it
	long     int  // for how many times Unreachable it has doubted
}

// memory is a host as a Store, within one step.
type memory struct{ *host }

func (s memory) View() View { return s.view }
func (s memory) Learn(v View) {
	if v.Generation > s.view.Generation {
		s.view = v
	}
}
func (s memory) Look(generation uint64) (a Acceptor, at uint64, ok bool) {
	if s.acceptor.Generation != generation {
		return Acceptor{Generation: generation}, 0, s.acceptor.Generation < generation
	}
	return s.acceptor, 0, true
}
func (s memory) Swap(_ uint64, a Acceptor) bool { s.acceptor = a; return true }

// unreachable is MALT_UNREACHABLE where it matters.
const unreachable = time.Second

func (g *game) run() explore.Result {
	g.job = Job{Hosts: g.hosts}
	for h := range g.hosts {
		if !g.rankless || h < g.hosts-1 {
			g.job.Of = append(g.job.Of, h)
		}
	}
	g.ids = map[string]uint16{}
	g.gone = &host{dead: true, see: Sight{Dead: NewSet(g.hosts), Left: NewSet(g.hosts), Doubted: NewSet(g.hosts)}}
	start := world{past: &past{}}
	start.past.decided[0] = g.job.Everyone()
	for h := range g.hosts {
		start.host[h] = &host{
			view: View{1, g.job.Everyone()}, ballots: g.ballots[h],
			see: Sight{Living: g.job.On(h), Dead: NewSet(g.hosts), Left: NewSet(g.hosts), Doubted: NewSet(g.hosts)},
		}
		if g.asks != nil {
			start.host[h].asks = g.asks[h]
		}
		if g.ends {
			start.host[h].see.Unreachable = unreachable
		}
	}
	if g.promise != nil {
		g.propose(start, g.hosts-1, func(_, _, _ int, _ bool, w world) { start = w })
		for _, h := range g.promise {
			g.receive(&start, h, g.messages[0])
			g.leave(&start, h)
		}
	}
	v := explore.Values[world]{Start: start, Key: g.key, Next: g.next, Name: g.name, Bad: func(s world) string { return s.bad }, Limit: g.limit}
	if g.ends {
		v.Ends = g.end
	}
	return v.Run()
}

// Steps.
const (
	dies = iota
	seesDead
	proposes
	receives
	diesUntold
	asks
	cuts
	heals
	doubts
	waits
	leaves
)

func (g *game) name(step uint64) string {
	what, h, a, _ := explore.StepParts(step)
	switch what {
	case dies:
		return fmt.Sprintf("host %d dies", h)
	case diesUntold:
		return fmt.Sprintf("host %d gets %s, and dies", h, g.show(a))
	case seesDead:
		return fmt.Sprintf("host %d takes %d for dead", h, a)
	case proposes:
		return fmt.Sprintf("host %d proposes, and suspects %b", h, a)
	case receives:
		return fmt.Sprintf("host %d gets %s", h, g.show(a))
	case asks:
		return fmt.Sprintf("host %d asks", h)
	case cuts:
		return fmt.Sprintf("hosts %v are cut off from each other", g.cuts[h])
	case heals:
		return fmt.Sprintf("hosts %v talk again", g.cuts[h])
	case leaves:
		return fmt.Sprintf("host %d leaves, with farewell %d", h, a)
	case doubts:
		return fmt.Sprintf("host %d doubts %b", h, a)
	}
	return fmt.Sprintf("host %d goes on doubting", h)
}

func (g *game) show(id int) string {
	s := g.messages[id]
	m := s.m
	text := fmt.Sprintf("%s of %d on generation %d", [...]string{"prepare", "promise", "accept", "accepted", "decided", "ask", "answer"}[m.Kind-First], s.from, m.Generation)
	if m.Ballot > 0 {
		text += fmt.Sprintf(", ballot %d", m.Ballot)
	}
	if v := [...]string{"", ", no", ", heard", ", holds"}[m.Verdict]; v != "" {
		text += fmt.Sprintf("%s (%d)", v, m.Other)
	}
	if m.Members.Hosts != nil {
		text += fmt.Sprintf(", members %b", m.Members.Hosts[0])
	}
	return text
}

// send puts a message on the network.
func (g *game) send(w *world, m Message, from, to int) {
	g.body = g.job.Append(append(g.body[:0], byte(m.Kind), byte(m.Verdict), byte(from), byte(to)), m)
	id, known := g.ids[string(g.body)]
	if !known {
		id = uint16(len(g.messages))
		g.ids[string(g.body)] = id
		g.messages = append(g.messages, sent{m, from, to})
	}
	if m.Kind == Promise && m.Verdict == Yes {
		w.vow(g.hosts, m.Generation, from)
	}
	if at, there := slices.BinarySearch(w.net, id); !there {
		w.net = slices.Insert(slices.Clone(w.net), at, id)
	}
}

// next are the steps that are possible.
func (g *game) next(s world, to func(step uint64, failure bool, next world)) {
	emit := func(what, h, a int, failure bool, w world) {
		g.tidy(&w)
		to(explore.Step(what, h, a, 0), failure, w)
	}
	for h := range g.hosts {
		me := s.host[h]
		if me.dead {
			continue
		}
		if s.kills < g.kills {
			w := s
			w.kills++
			w.own(h).dead = true
			emit(dies, h, 0, true, w)
		}
		if slices.Contains(g.leaves, h) {
			w := s
			emit(leaves, h, int(g.leave(&w, h)), false, w)
		}
		for d := range g.hosts {
			if d == h || me.see.Dead.Has(d) || !s.host[d].dead && s.lies == g.lies {
				continue
			}
			w := s
			if !s.host[d].dead {
				w.lies++
			}
			it := w.own(h)
			it.see.Dead = me.see.Dead.With(d)
			it.see.Doubted = me.see.Doubted.Less(it.see.Dead)
			g.count(&w, h)
			emit(seesDead, h, d, !s.host[d].dead, w)
		}
		g.propose(s, h, emit)
		if me.asks > 0 {
			w := s
			it := w.own(h)
			it.asks--
			it.question = g.voter(&w, h).Confirm(uint64(1 + it.asks))
			it.tainted = g.goneOn(&w, h)
			if it.asks > 0 || it.tainted { // the last one is asked when the answer has to be no
				g.send(&w, it.question.Ask(), h, -1)
				emit(asks, h, 0, false, w)
			}
		}
		for _, id := range s.net {
			m := g.messages[id]
			if m.from == h && (m.m.Kind == Prepare || m.m.Kind == Decided) {
				continue
			}
			if (m.to < 0 || m.to == h) && g.talk(&s, m.from, h) {
				w := s
				told := g.receive(&w, h, m)
				emit(receives, h, int(id), false, w)
				if told && s.kills < g.kills { // it has gone on, and has told nobody
					w := s
					g.receive(&w, h, m)
					w.net, w.kills, w.own(h).dead = s.net, w.kills+1, true
					emit(diesUntold, h, int(id), true, w)
				}
			}
		}
	}
	g.change(s, emit)
}

// change are the steps of the network and of clocks, where it is judged whether votes end.
func (g *game) change(s world, emit func(what, h, a int, failure bool, w world)) {
	if !g.ends {
		return
	}
	for i := range g.cuts {
		if w := s; s.cut>>i&1 == 0 {
			w.cut |= 1 << i
			emit(cuts, i, 0, true, w)
		} else if g.heals {
			w.cut &^= 1 << i
			emit(heals, i, 0, true, w)
		}
	}
	for h := range g.hosts {
		me := s.host[h]
		if me.dead {
			continue
		}
		doubted := NewSet(g.hosts)
		for d := range g.hosts {
			if d != h && !me.see.Dead.Has(d) && !g.talk(&s, h, d) {
				doubted.Add(d)
			}
		}
		if !doubted.Equals(me.see.Doubted) {
			w := s
			it := w.own(h)
			it.see.Doubted, it.see.Lasted, it.long = doubted, 0, 0
			emit(doubts, h, int(doubted[0]), false, w)
		} else if !doubted.Empty() && me.long < 2 {
			w := s
			it := w.own(h)
			it.long++
			it.see.Lasted += unreachable
			if p := it.proposal; p != nil && !p.accepting { // asks again
				g.send(&w, p.Prepare(it.see.Lasted), h, -1)
			}
			emit(waits, h, 0, false, w)
		}
	}
}

// propose has host h take a ballot, for any reason or for a good one.
func (g *game) propose(s world, h int, emit func(what, h, a int, failure bool, w world)) {
	me := s.host[h]
	if me.ballots == 0 || me.view.Generation == g.generations || !me.view.Hosts.Has(h) {
		return
	}
	if g.from != nil && me.view.Generation < g.from[h] {
		return
	}
	for set := range 1 << g.hosts {
		w := s
		it := w.own(h)
		if g.ends {
			p := it.proposal
			under := p != nil && p.View.Generation == it.view.Generation
			if set > 0 || !under && !g.restless && it.see.Suspects(it.view).Empty() || under && !p.Beaten() && !p.Stale(it.see) {
				return
			}
		} else {
			if set>>h&1 != 0 || !Set([]uint64{uint64(set)}).Within(it.view.Hosts) || g.suspects != nil && !slices.Contains(g.suspects[h], set) {
				continue
			}
			it.see.Doubted = Set{uint64(set)}
		}
		p, ok := g.voter(&w, h).Propose(it.see, it.proposal)
		if !g.ends {
			it.see.Doubted = NewSet(g.hosts)
		}
		if !ok {
			continue
		}
		it.ballots--
		it.proposal = p
		w.vow(g.hosts, p.View.Generation+1, h)
		g.send(&w, p.Prepare(it.see.Lasted), h, -1)
		g.count(&w, h)
		emit(proposes, h, int(p.Suspects[0]), false, w)
	}
}

func (g *game) voter(w *world, h int) Voter {
	return Voter{Store: memory{w.host[h]}, Job: g.job, Host: h}
}

// receive has host h take in a message, and tells whether it has come to know a view by its
// own count.
func (g *game) receive(w *world, h int, s sent) (told bool) {
	me := w.own(h)
	before := me.view.Generation
	switch s.m.Kind {
	case Promise, Accepted:
		if p := me.proposal; p != nil {
			changed := *p
			me.proposal = &changed
			me.proposal.Heed(s.m, s.from)
			g.count(w, h)
		}
	case Answer:
		if q := me.question; q != nil {
			changed := *q
			me.question = &changed
			changed.Heed(s.m, s.from)
			*me.question = changed
			g.look(w, h, q.View)
			if me.question.Confirmed(me.see) {
				if me.tainted {
					w.bad = fmt.Sprintf("host %d confirms generation %d, and others had gone on without it", h, q.View.Generation)
				}
				me.question = nil
			}
		}
	default:
		if answer, ok := g.voter(w, h).Answer(s.m, me.see, s.from); ok {
			g.send(w, answer, h, s.from)
		}
	}
	if me.view.Generation > before {
		g.learned(w, h)
		return s.m.Kind == Accepted
	}
	return false
}

// count has host h look whether its proposal can go on.
func (g *game) count(w *world, h int) {
	me := w.host[h]
	p := me.proposal
	if p == nil || p.View.Generation < me.view.Generation {
		return
	}
	g.look(w, h, p.View)
	changed := *p
	if changed.Ready(me.see) {
		me.proposal = &changed
		m, _ := changed.Accept()
		g.send(w, m, h, -1)
	}
	if v, ok := changed.Decided(me.see); ok {
		g.voter(w, h).Learn(v)
		g.send(w, decided(v), h, -1)
		g.learned(w, h)
	}
}

// look is what host h, its own, makes of the hosts that it knows to have left, as to votes on
// the view after v.
func (g *game) look(w *world, h int, v View) {
	me := w.host[h]
	me.see.Left = NewSet(g.hosts)
	for d := range me.see.Dead.All() {
		if w.host[d].left && v.Abstains(w.host[d].farewell) {
			me.see.Left.Add(d)
		}
	}
}

// leave has the ranks of host h leave, and returns what they say.
func (g *game) leave(w *world, h int) uint64 {
	it := w.own(h)
	it.farewell = g.voter(w, h).Farewell()
	it.dead, it.left = true, true
	return it.farewell
}

// learned judges the view that host h has come to know.
func (g *game) learned(w *world, h int) {
	v := w.host[h].view
	switch first := w.past.decided[v.Generation-1]; {
	case first.Hosts == nil:
		now := *w.past
		now.decided[v.Generation-1] = v.Members
		w.past = &now
	case !first.Equals(v.Members):
		w.bad = fmt.Sprintf("two views of generation %d: hosts %b and %b", v.Generation, first.Hosts[0], v.Hosts[0])
	}
	switch before := w.past.decided[v.Generation-2].Hosts; {
	case v.Hosts.Empty():
		w.bad = fmt.Sprintf("nobody is in generation %d", v.Generation)
	case w.past.vowed[v.Generation-1] == nil || !v.Hosts.Within(w.past.vowed[v.Generation-1]):
		w.bad = fmt.Sprintf("hosts %b are in generation %d, and %b have promised", v.Hosts[0], v.Generation, w.past.vowed[v.Generation-1])
	case before != nil && !v.Hosts.Within(before):
		w.bad = fmt.Sprintf("hosts %b are in generation %d, after %b", v.Hosts[0], v.Generation, before[0])
	}
	for rank := range v.Ranks.All() {
		if !v.Hosts.Has(g.job.Of[rank]) {
			w.bad = fmt.Sprintf("rank %d is in generation %d, and its host is not", rank, v.Generation)
		}
	}
}

// goneOn tells whether a view without host h has been decided.
func (g *game) goneOn(w *world, h int) bool {
	return slices.ContainsFunc(w.past.decided[:], func(m Members) bool { return m.Hosts != nil && !m.Hosts.Has(h) })
}

// talk tells whether frames pass from one host to another.
func (g *game) talk(s *world, from, to int) bool {
	for i, pair := range g.cuts {
		if s.cut>>i&1 != 0 && (pair == [2]int{from, to} || pair == [2]int{to, from}) {
			return false
		}
	}
	return true
}

// end is where nobody waits: the hosts of the last view can talk, live, and know it. It must
// be reached where enough can talk, and one of them has ballots left.
func (g *game) end(s world) (reached, must bool) {
	last := View{}
	for h := range g.hosts {
		if v := s.host[h].view; !s.host[h].dead && v.Generation > last.Generation {
			last = v
		}
	}
	fine := func(hosts Set) bool {
		for a := range hosts.All() {
			for b := range hosts.All() {
				if s.host[a].dead || !g.talk(&s, a, b) {
					return false
				}
			}
		}
		return true
	}
	reached = last.Generation == g.generations || fine(last.Hosts)
	for h := range last.Hosts.All() {
		reached = reached && (s.host[h].dead || s.host[h].view.Generation == last.Generation)
	}
	// Enough hosts can talk, each with each; one has two ballots: the first may be refused.
	for set := uint64(1); set < 1<<g.hosts; set++ {
		hosts := Set{set}
		dead, left := NewSet(g.hosts), NewSet(g.hosts)
		ballots := 0
		for h := range g.hosts {
			if s.host[h].dead {
				dead.Add(h)
			}
			if s.host[h].left && last.Abstains(s.host[h].farewell) {
				left.Add(h)
			}
			if hosts.Has(h) {
				ballots = max(ballots, s.host[h].ballots)
			}
		}
		must = must || hosts.Within(last.Hosts) && fine(hosts) && ballots > 1 && Quorum(last.Hosts, hosts, Sight{Dead: dead, Left: left})
	}
	return reached, must
}

// tidy drops what nobody looks at any more.
func (g *game) tidy(w *world) {
	for h := range g.hosts {
		me := w.host[h]
		switch p := me.proposal; {
		case me.dead:
			gone := *g.gone
			gone.left, gone.farewell = me.left, me.farewell
			w.host[h] = &gone
		case p != nil && p.View.Generation < me.view.Generation:
			w.own(h).proposal = nil
		}
	}
	if !slices.ContainsFunc(w.net, func(id uint16) bool { return g.idle(w, g.messages[id]) }) {
		return
	}
	w.net = slices.DeleteFunc(slices.Clone(w.net), func(id uint16) bool { return g.idle(w, g.messages[id]) })
}

// idle tells whether a message can change nothing, at whatever time it arrives: an answer
// that is not heeded any more, and a question that everybody has behind it.
func (g *game) idle(w *world, s sent) bool {
	var p *Proposal
	var q *Question
	if s.to >= 0 {
		p, q = w.host[s.to].proposal, w.host[s.to].question
	}
	switch m := s.m; m.Kind {
	case Prepare, Accept:
		if p := w.host[s.from].proposal; p != nil && p.Ballot == m.Ballot && p.View.Generation+1 == m.Generation {
			return false
		}
		for h := range g.hosts {
			me := w.host[h]
			done := me.dead || me.view.Generation >= m.Generation
			if !done && me.acceptor.Generation == m.Generation {
				done = me.acceptor.Promised > m.Ballot || me.acceptor.Promised == m.Ballot && (m.Kind == Prepare || me.acceptor.Accepted == m.Ballot)
			}
			if !done {
				return false
			}
		}
		return true
	case Promise, Accepted:
		switch {
		case g.late && m.Verdict == Yes:
			return w.host[s.to].dead
		case p == nil || m.Verdict == Heard || p.Ballot != m.Ballot && p.View.Generation+1 == m.Generation:
			return true
		case m.Verdict == No: // else a host takes another ballot whenever it likes
			return !g.ends || p.higher >= m.Other
		}
		return m.Kind == Promise && p.accepting
	case Answer:
		return q == nil && w.host[s.to].asks == 0
	case Decided:
		for h := range g.hosts {
			if me := w.host[h]; !me.dead && (s.to < 0 || s.to == h) && me.view.Generation < m.Generation {
				return false
			}
		}
		return true
	}
	return false
}

// key is all of a state but the past.
func (g *game) key(b []byte, w world) []byte {
	set := func(s Set) {
		if s == nil {
			b = append(b, 255)
		} else {
			b = append(b, byte(s[0]))
		}
	}
	members := func(m Members) { set(m.Hosts); set(m.Ranks) }
	flag := func(flags ...bool) {
		v := byte(0)
		for i, f := range flags {
			if f {
				v |= 1 << i
			}
		}
		b = append(b, v)
	}
	for h := range g.hosts {
		me := w.host[h]
		flag(me.dead, me.tainted, me.proposal != nil, me.question != nil, me.proposal != nil && me.proposal.accepting)
		if me.dead {
			b = append(b, byte(me.farewell))
			flag(me.left)
			continue
		}
		b = append(b, byte(me.view.Generation), byte(me.ballots), byte(me.asks), byte(me.long))
		b = append(b, byte(me.acceptor.Generation), byte(me.acceptor.Promised), byte(me.acceptor.Accepted))
		members(me.view.Members)
		members(me.acceptor.Members)
		set(me.see.Dead)
		set(me.see.Doubted)
		if p := me.proposal; p != nil {
			b = append(b, byte(p.View.Generation), byte(p.Ballot), byte(p.best), byte(p.higher))
			set(p.Suspects)
			set(p.promised)
			set(p.living)
			set(p.accepted)
			members(p.members)
		}
		if q := me.question; q != nil {
			b = append(b, byte(q.View.Generation), byte(q.Number))
			set(q.yes)
		}
	}
	b = append(b, byte(w.kills), byte(w.lies), byte(w.cut), byte(len(w.bad)))
	for i := range g.generations {
		members(w.past.decided[i])
		set(w.past.vowed[i])
	}
	for _, id := range w.net {
		b = append(b, byte(id), byte(id>>8))
	}
	return b
}

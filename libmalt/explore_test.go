//go:build explore

package libmalt

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"malt/internal/explore"
	"malt/libmalt/boxes"
	"malt/libmalt/codec"
	"malt/libmalt/filter"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/route/hosts"
	"malt/libmalt/route/shared"
	"malt/libmalt/rows"
	"malt/libmalt/rule"
	"malt/libmalt/spvec"
	"malt/rdma"
	"malt/rdma/explored"
)

// Gathers, scatters and collectives of small jobs in every interleaving; package
// explore says how. What runs is the code of this package over real boxes; only
// the making of objects is done beforehand.
//

// play is a case: what each rank does before it leaves the job. s is a scatter
// and a gather, e one that goes to nobody, p a scatter alone and t a gather alone, b a barrier, c closes the object, w
// does nothing until the others have left. q is a scatter to rank 0 alone. g is a barrier that may run into its timeout and is given up then; B
// one that may find that the other has. For a, i, k, x and X see
// explore_inplace_test.go, for r, R, Y, y, z, v, o, m, M and n explore_reducing_test.go,
// for d and D explore_survive_test.go, for S, T, P, G, h, H, j and A explore_changes_test.go, for u, U and V explore_keyed_test.go.
// W is a gather that waits for an update.
type play struct {
	options  string // of the object, and the play's own
	scripts  []string
	kills    int
	buffered bool  // stores are those of x86
	host     []int // of each rank; nil: all share memory. See explore_across_test.go
}

// Options of a play itself.
const (
	lines       = "lines="       // that each rank owns, in an exchange
	preemptions = "preemptions=" // at most, see explore.Options
	survive     = "survive="     // 1: the job goes on when a rank dies; see explore_survive_test.go
	small       = "small="       // 1: rank 0, where it decides about an average in place, folds for all; 2: each rank
	split       = "split="       // 1: data of collective calls is sent behind its header
	apart       = "apart="       // the host of each rank, a digit, if there are several: see explore_settle_test.go
	dies        = "dies="        // 1 + the rank that may die; 0: all may
	opens       = "opens="       // 1 + the rank, a digit for each that goes as far as it can before the play begins, in this order
	died        = "died="        // 1 + the rank of these that dies there
	cut         = "cut="         // 1 + the rank that is left out alive
	beside      = "beside="      // 1: a rank that is in a collective call passes on what comes
	recorded    = "recorded="    // what is to be folded: see explore_replay_test.go
)

// own is what the play says itself under a key, or 0.
func (p *play) own(key string) (value int) {
	for option, rest := "", p.options; rest != ""; { // in every execution: strings.FieldsSeq takes three times as long
		option, rest, _ = strings.Cut(rest, " ")
		if text, ok := strings.CutPrefix(option, key); ok {
			value, _ = strconv.Atoi(text)
		}
	}
	return value
}

// ofObject are the options that are not the play's own.
func (p *play) ofObject() string {
	return strings.Join(slices.DeleteFunc(strings.Fields(p.options), func(option string) bool {
		return slices.ContainsFunc([]string{lines, preemptions, survive, small, split, apart, dies, opens, died, cut, beside, recorded}, func(own string) bool { return strings.HasPrefix(option, own) })
	}), " ")
}

// inPlace tells whether the object is a vector that is averaged in place.
func (p *play) inPlace() bool {
	return strings.ContainsAny(strings.Join(p.scripts, ""), "aikxX") || p.reduces()
}

// actor is a rank of a play.
type actor struct {
	t    *explore.Thread
	tr   *explored.Transport
	w    *World
	v    *Vector
	s    *Object // of v, in most plays not used as one
	b    *boxes.Boxes
	e    ofChanges    // in place of b
	k    *rows.Engine // the same
	play *play
	all  []*actor // by rank
	log  []byte   // shared: what each rank has folded, see fold
	last []uint64 // by rank: clock of the update folded last
	mine float64  // what its array holds since it gave an allreduce up
	has  [][]byte // by rank: its rows as they were folded last, of a sparse object

	made  []uint64 // changes: by number, from 0, its clock when it scattered that
	upTo  []int    // by rank: how many changes are in its array
	given [8]int   // by call: how many changes it had made, or given to an allreduce

	tape *playTape // nil: see explore_replay_test.go

	levels []uint64   // its clock after each allreduce, broadcast and barrier
	done   rdma.Words // who has done all, on several hosts: see stay
	stays  bool
}

const entryBytes = 8

// cast makes the ranks.
func (p *play) cast(x *explore.Exec, m mode) []*actor {
	n := len(p.scripts)
	job := explored.New(x, n, p.buffered)
	if p.own(survive) > 0 {
		job.Survive()
	}
	if hosts := p.own(apart); hosts > 0 {
		job.Apart(digits(hosts))
	}
	marks := job.Words("mark", core.MarkCount)
	log := x.Memory(entryBytes * 16 * n)
	all := make([]*actor, n)
	for r := range all {
		w := &World{job: core.Explored(r, n), timeout: 1}
		w.job.Room = room
		tape := p.tape(r)
		if tape != nil {
			w.job.Tape = tape
		}
		v := &Vector{Object: Object{w: w}}
		own := m
		v.mode.Store(&own)
		s := &v.Object
		s.Kind, s.Data = "segment", make([]byte, 8)
		s.Number(w.job, 1, "s")
		if p.keyed() {
			all[r] = &actor{w: w, v: v, s: s}
			continue
		}
		if m.Graph.OfChanges() {
			all[r] = carried(v, p, all, log)
			continue
		}
		b, _ := boxes.New(&s.Member, nil, codec.Dense, filter.Filter{}, spvec.Shape{}, reduce.Mean)
		s.way, s.Body = b, b
		w.job.Hosts = p.hosts()
		if m.sparse != codec.Dense {
			b.Codec = codec.Explored(&s.Member, twoRows)
		}
		if m.fold.Changes() {
			oneNumber(v, b)
		}
		s.Base = &s.Data[0]
		w.job.Enlist(&s.Member)
		all[r] = &actor{w: w, v: v, s: s, b: b, play: p, all: all, log: log, last: make([]uint64, n), has: emptyRows(n), tape: tape}
	}
	switch {
	case p.host != nil:
		shareAcross(x, job, all, max(1, p.own(lines)))
	case p.inPlace():
		share(job, all)
	}
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	switch {
	case p.keyed():
		keyedActors(p, job, all, log)
	case m.Graph.OfChanges():
		joinEngines(job, all)
	default:
		for _, a := range all {
			a.b.Explored(m.Mode, p.own(survive) > 0)
		}
	}
	for r, a := range all {
		if a.b != nil {
			_, spec, receivers := a.b.Box()
			out, in, err := job.Box(r, spec, receivers)
			must(err)
			a.b.Connect(out)
			for i, to := range receivers {
				all[to].b.Hear(r, in[i])
			}
		}
		var others []int
		for o := range all {
			if o != r {
				others = append(others, o)
			}
		}
		if !slices.ContainsFunc(p.scripts, func(s string) bool { return strings.ContainsAny(s, "bBgdDrRYyzomMnNQhHjAuUV") }) {
			continue
		}
		out, in, err := job.Box(r, rdma.Spec{Bytes: 128 + len(a.s.Data), Mode: rdma.Queue(1)}, others)
		must(err)
		if p.own(split) > 0 {
			a.w.job.Split()
		}
		a.w.job.Connect(out, make([]byte, len(a.s.Data)))
		for i, to := range others {
			all[to].w.job.Hear(r, in[i])
		}
	}
	if p.own(apart) > 0 {
		p.settle(job, all)
	}
	for r, a := range all {
		a.t = job.Go(r, func(t *explore.Thread, tr *explored.Transport) {
			a.tr, a.w.job.T, a.w.job.Marks = tr, tr, core.NewMarks(tr, marks[r])
			if p.own(survive) > 0 {
				if err := a.w.job.Survive(context.Background(), 1); err != nil {
					t.Fail("%v", err)
				}
			}
			if a.b == nil {
				a.s.way.Use(rdma.Everyone(n))
			}
			a.perform(p.scripts[r])
		})
		if dies := p.own(dies); dies > 0 && dies != 1+r {
			a.t.Immune()
		}
	}
	if p.kills > 0 {
		p.open(x, all, job.Kernel())
	}
	if rank := p.own(cut) - 1; rank >= 0 {
		job.Cut(rank)
	}
	if p.inPlace() && p.host == nil {
		x.Always(func(report func(string, ...any)) { claims(all, report) })
	}
	if m.Rule.Kind == rule.BSP || p.own(survive) > 0 && strings.ContainsAny(strings.Join(p.scripts, ""), "dDh") {
		x.Final(func(report func(string, ...any)) { agree(all, report) })
	}
	if p.own(apart) > 0 && m.fold.Changes() {
		x.Final(func(report func(string, ...any)) { left(all, report) })
	}
	if p.own(survive) > 0 && p.inPlace() {
		x.Final(func(report func(string, ...any)) { same(all, report) })
	}
	if all[0].edged() {
		x.Final(func(report func(string, ...any)) { kept(all, report) })
	}
	if p.reduces() {
		x.Final(func(report func(string, ...any)) { alike(all, report) })
	}
	return all
}

func (a *actor) sparse() bool { return a.b != nil && a.b.Codec.Repeats() }

// local is what the steps of a gather or scatter, and all calls to come, depend
// on.
func (a *actor) local() []any {
	s := a.s
	if a.k != nil {
		return append(a.k.State(), s.Member.State(), a.w.job.State(), a.levels)
	}
	if a.e != nil {
		return append(a.e.State(), s.Member.State(), a.w.job.State(), a.made, a.upTo, a.given, s.Data)
	}
	state := append(a.b.State(), a.mine, a.last, a.levels)
	state = append(state, a.w.job.State()...)
	if a.sparse() {
		state = append(state, a.has, s.Data, explore.Ignore{State: a.b.Codec, Fields: codec.Scratch})
	}
	if a.changes() {
		state = append(state, a.made, a.upTo, a.given, s.Data, explore.Ignore{State: a.b.Codec, Fields: codec.ScratchOfChanges})
	}
	if a.tape != nil {
		state = append(state, a.tape.lines)
	}
	out, _, _ := a.b.Box()
	state = append(state, explore.Ignore{State: out, Fields: []string{"busy", "look", "payload"}})
	switch r := a.b.Route.(type) {
	case *shared.Route:
		state = append(state, r.State()...)
	case *hosts.Route:
		state = append(state, a.exchanged(r)...)
	}
	return state
}

func (a *actor) at(label string) {
	if !a.t.Replaying() {
		a.t.At(label, a.local()...)
	}
}

func (a *actor) perform(script string) {
	ctx := context.Background()
	for i, step := range script {
		a.at(script[i:])
		a.tr.Local = func() []any { return append(append(a.local(), a.meeting()...), script[i:]) }
		if a.tr.Beside = nil; a.play.own(beside) > 0 && strings.ContainsRune("bh", step) {
			a.tr.Beside = a.e.Beside
		}
		var err error
		switch step {
		case 's':
			err = a.sync(ctx)
		case 'e':
			err = a.apart(ctx)
		case 'p':
			err = a.scatter(ctx, nil)
		case 'q':
			err = a.scatter(ctx, []int{0})
		case 't':
			err = a.gather(ctx, a.s.Clock())
		case 'W':
			err = a.awaits(ctx)
		case 'a', 'i', 'x', 'X', 'K':
			err = a.average(ctx, step)
		case 'r', 'R', 'Y', 'y', 'z', 'o', 'm', 'M', 'n', 'N', 'Q':
			err = a.reduce(ctx, step)
		case 'S', 'T', 'P', 'G', 'h', 'H', 'j', 'A':
			err = a.change(ctx, step)
		case 'u', 'U', 'V':
			err = a.share(ctx, step)
		case 'v':
			err = a.kept()
		case 'b':
			a.given[a.w.job.Calls()+1] = len(a.made)
			err = a.barrier(ctx)
		case 'd':
			err = a.sum(ctx)
		case 'D':
			err = a.root(ctx)
		case 'B':
			if err = a.w.Barrier(ctx); errors.Is(err, ErrLeft) {
				err = nil
			}
		case 'g':
			if err = a.w.Barrier(&explored.Patience{Context: ctx}); errors.Is(err, ErrTimeout) {
				err = nil
			}
		case 'c':
			err = a.s.Close()
		case 'w':
			a.t.Await(func() bool {
				return !slices.ContainsFunc(a.all, func(b *actor) bool { return b != a && !b.t.Done() && !b.t.Dead() })
			})
		}
		var dead *rdma.PeerError
		switch {
		case errors.Is(err, rdma.ErrExpelled) && a.play.own(cut) == 1+a.w.job.Rank:
			return
		case errors.As(err, &dead) && a.play.kills > 0 && a.play.own(survive) == 0:
			_ = a.w.Close()
			return
		case err != nil:
			a.t.Fail("%q at %d: %v", script, i, err)
		}
	}
	if a.done != nil && !a.stay(ctx) {
		return
	}
	if a.done != nil && a.changes() && !a.s.Lockstep() { // what it was given counts now
		if err := a.change(ctx, 'G'); err != nil {
			a.t.Fail("the last gather: %v", err)
		}
	}
	a.at("leave")
	if err := a.w.Close(); err != nil {
		a.t.Fail("leaving: %v", err)
	}
}

func (a *actor) barrier(ctx context.Context) error {
	err := a.w.Barrier(ctx)
	if err == nil {
		a.levelled(a.w.job.Calls())
	}
	return err
}

func (a *actor) sync(ctx context.Context) error {
	if err := a.scatter(ctx, nil); err != nil {
		return err
	}
	return a.gather(ctx, a.s.Clock())
}

// apart is a sync of which the others get nothing. So what it folds is not what they
// do, and is not held against that.
func (a *actor) apart(ctx context.Context) error {
	err := a.scatter(ctx, []int{})
	if err == nil {
		err = a.gather(ctx, a.s.Clock())
		a.fold(a.s.Clock(), 0)
	}
	return err
}

// scatter sends this rank's clock.
func (a *actor) scatter(ctx context.Context, to []int) error {
	clock := a.s.Clock() + 1
	a.fill(clock)
	weight := 1.0
	if a.s.Kind == "vector" {
		weight = weightOf(a.w.job.Rank, clock)
	}
	_, err := a.b.Send(ctx, len(a.s.Data), nil, to, weight)
	if err == nil && a.edged() {
		a.sent(clock)
	}
	return err
}

// gather judges what it gathers.
func (a *actor) gather(ctx context.Context, clock uint64) error {
	updates, err := a.s.Begin(ctx)
	var dead *rdma.PeerError
	if errors.As(err, &dead) {
		a.refused(clock, dead)
		a.missed(dead.Rank)
	}
	if err != nil {
		return err
	}
	for r := range a.w.job.Size {
		if r != a.w.job.Rank && !a.edged() && !slices.ContainsFunc(updates, func(u Update) bool { return u.Rank == r }) {
			a.missed(r)
		}
	}
	set := byte(1) << a.w.job.Rank
	for look := range 2 { // before and after others had turns: as a fold that takes its time
		if look > 0 {
			a.t.Yield()
		}
		for _, u := range updates {
			set |= 1 << u.Rank
			if a.w.job.Rank > 0 && a.play.named(u.Rank) {
				a.t.Fail("the update of clock %d from rank %d was for rank 0 alone", u.Clock, u.Rank)
			}
			if err := a.read(u); err != nil {
				a.t.Fail("torn: the update of clock %d from rank %d %v", u.Clock, u.Rank, err)
			}
		}
	}
	for _, u := range updates {
		a.judge(clock, u)
		if a.sparse() {
			a.judgeRows(u)
		}
		a.last[u.Rank] = u.Clock
	}
	a.fold(clock, set)
	return a.s.End(true)
}

// awaits gathers after a wait for an update, which brings none only where none can come.
func (a *actor) awaits(ctx context.Context) error {
	if err := a.s.Await(ctx); err != nil {
		return err
	}
	before := slices.Clone(a.last)
	if err := a.gather(ctx, a.s.Clock()); err != nil || !slices.Equal(before, a.last) {
		return err
	}
	for r := range a.all {
		if r == a.w.job.Rank {
			continue
		}
		_, gone := a.b.From(r).Clock()
		if standing, _ := a.w.job.Standing(r, gone); rule.About(standing) == rule.Wait {
			a.t.Fail("a wait for an update has ended without one, and rank %d still sends", r)
		}
	}
	return nil
}

// fill writes what the scatter of that clock sends.
func (a *actor) fill(clock uint64) {
	switch {
	case a.s.Kind == "vector":
		a.fillValue(clock)
	case a.sparse():
		changeRow(a.s.Data, clock)
	default:
		binary.LittleEndian.PutUint64(a.s.Data, clock)
	}
}

// read looks at what an update holds.
func (a *actor) read(u Update) error {
	switch {
	case a.s.Kind == "vector":
		return a.readValue(u)
	case a.sparse():
		return nil // see rows
	}
	if got := binary.LittleEndian.Uint64(u.Data); got != u.Clock {
		return fmt.Errorf("holds %d", got)
	}
	return nil
}

// judge holds one update against what the consistency promises.
func (a *actor) judge(clock uint64, u Update) {
	if u.Clock <= a.last[u.Rank] {
		a.t.Fail("clock %d of rank %d is folded after its clock %d", u.Clock, u.Rank, a.last[u.Rank])
	}
	switch m := a.s.mode.Load().Rule; m.Kind {
	case rule.BSP:
		if u.Clock != clock {
			a.t.Fail("at clock %d, clock %d of rank %d is folded", clock, u.Clock, u.Rank)
		}
	case rule.SSP:
		if u.Clock+m.N < clock {
			a.t.Fail("at clock %d with slack %d, clock %d of rank %d is folded", clock, m.N, u.Clock, u.Rank)
		}
	case rule.NotifyAck:
		if a.edged() && u.Clock != clock {
			a.t.Fail("at clock %d, clock %d of rank %d is folded", clock, u.Clock, u.Rank)
		}
		if !a.edged() && u.Clock != a.last[u.Rank]+1 && !strings.ContainsAny(a.play.scripts[a.w.job.Rank], "bBg") {
			a.t.Fail("clock %d of rank %d is folded next after its clock %d", u.Clock, u.Rank, a.last[u.Rank])
		}
	}
}

func (a *actor) entry(rank int, clock uint64) *byte {
	return &a.log[entryBytes*(16*rank+int(clock))]
}

const refusal = 1 << 7

// fold enters whose updates, the own included, are in a clock.
func (a *actor) fold(clock uint64, set byte) { *a.entry(a.w.job.Rank, clock) = set }

// missed judges a gather in notify-ack that goes on without rank, or fails for
// it: there was nothing more from it, and will not be.
func (a *actor) missed(rank int) {
	if a.s.mode.Load().Rule.Kind != rule.NotifyAck || strings.ContainsAny(a.play.scripts[rank], "bBg") {
		return
	}
	if in := a.b.From(rank); in != nil {
		if u, ok, err := in.Next(); ok || err != nil {
			a.t.Fail("the update of clock %d from rank %d, which has gone, is not folded (%v)", u.Clock, rank, err)
		}
	}
}

// refused judges a gather that has failed because of a death: either who has
// died had not arrived at that clock, so that all who live refuse it, or the
// gather had to wait for another.
func (a *actor) refused(clock uint64, dead *rdma.PeerError) {
	if !a.s.Lockstep() {
		return
	}
	if arrived, _ := a.b.From(dead.Rank).Clock(); arrived < clock {
		a.fold(clock, refusal)
	} else if a.w.job.Size == 2 {
		a.t.Fail("the gather of clock %d fails, though rank %d was at clock %d when it died", clock, dead.Rank, arrived)
	}
}

// named tells whether a rank sends to rank 0 alone.
func (p *play) named(rank int) bool { return strings.Contains(p.scripts[rank], "q") }

// agree holds the ranks that live against each other: in bsp on `all`, all who
// fold at a clock fold the same set, and nobody does if a rank had died before it
// arrived there. An update for rank 0 alone that lives counts there.
func agree(all []*actor, report func(string, ...any)) {
	for clock := range uint64(16) {
		var first *actor
		for _, a := range all {
			set, some := *a.entry(a.w.job.Rank, clock), byte(0)
			for r, b := range all {
				if a.play.named(r) {
					some |= 1 << r
					if a.w.job.Rank == 0 && set != 0 && set>>r&1 == 0 && !b.out() {
						report("at clock %d rank 0 lacks the update of rank %d, which lives", clock, r)
					}
				}
			}
			switch {
			case set == 0 || a.out():
			case first == nil:
				first = a
			case (set^*a.entry(first.w.job.Rank, clock))&^some != 0:
				report("at clock %d rank %d has folded the set %#b, rank %d %#b (%#b: refused)",
					clock, first.w.job.Rank, *a.entry(first.w.job.Rank, clock), a.w.job.Rank, set, refusal)
			}
		}
	}
}

func (p *play) run(t *testing.T) {
	m, err := defaultMode(len(p.scripts))
	if err == nil {
		m, err = m.with(p.ofObject(), len(p.scripts), newVector)
	}
	if err != nil {
		t.Fatal(err)
	}
	explore.Must(t, explore.Check(explore.Options{Kills: p.kills, Buffered: p.buffered, Preemptions: p.own(preemptions)}, func(x *explore.Exec) { p.cast(x, m) }))
}

func TestExplorePlays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		large bool
		play
	}{
		{"bsp", false, play{"consistency=bsp", []string{"ss", "ss"}, 1, false, nil}},
		{"bsp, uneven", false, play{"consistency=bsp", []string{"s", "sss"}, 0, false, nil}},
		{"bsp, barrier", false, play{"consistency=bsp", []string{"sbs", "ssbs"}, 0, false, nil}},
		{"bsp, plain stores", false, play{"consistency=bsp", []string{"ss", "ss"}, 0, true, nil}},
		{"notify-ack, plain stores", false, play{"consistency=notify-ack", []string{"ss", "ss"}, 0, true, nil}},
		{"bsp, three ranks", true, play{"consistency=bsp", []string{"s", "s", "ss"}, 0, false, nil}},
		{"notify-ack", false, play{"consistency=notify-ack", []string{"ss", "ss"}, 1, false, nil}},
		{"notify-ack, uneven", false, play{"consistency=notify-ack", []string{"s", "sss"}, 1, false, nil}},
		{"notify-ack, barrier", false, play{"consistency=notify-ack", []string{"sbs", "sssb"}, 0, false, nil}},
		{"notify-ack:2", false, play{"consistency=notify-ack:2", []string{"sss", "sss"}, 0, false, nil}},
		{"ssp", false, play{"consistency=ssp:1", []string{"ss", "sss"}, 0, false, nil}},
		{"ssp, barrier", false, play{"consistency=ssp:0", []string{"sbs", "ssbs"}, 0, false, nil}},
		{"bsp, closed", false, play{"consistency=bsp", []string{"scw", "ss"}, 0, false, nil}},
		{"bsp, given up", false, play{"consistency=bsp", []string{"ggw", "BB"}, 0, false, nil}},
		{"bsp, given up, then not", true, play{"consistency=bsp", []string{"gbs", "sBbs"}, 0, false, nil}},
		{"ssp, news of a call given up", false, play{"consistency=ssp:0", []string{"pBb", "gb"}, 0, false, nil}},
		{"notify-ack, closed", false, play{"consistency=notify-ack", []string{"scw", "sss"}, 0, false, nil}},
		{"notify-ack, given up, plain stores", false, play{"consistency=notify-ack", []string{"gs", "ssB"}, 0, true, nil}},
		{"notify-ack, given up", true, play{"consistency=notify-ack", []string{"sgbs", "ssBbs"}, 0, false, nil}},
		{"async", false, play{"consistency=async", []string{"ss", "ss"}, 1, false, nil}},
		{"async, a wait for an update", false, play{"consistency=async", []string{"W", "pw"}, 1, false, nil}},
		{"async, a wait for an update, and for none", false, play{"consistency=async", []string{"WW", "p"}, 0, false, nil}},
		{"async, waits for updates of each other", false, play{"consistency=async", []string{"pW", "pW"}, 0, false, nil}},
		{"async, a wait for an update, barrier", false, play{"consistency=async", []string{"WbW", "bp"}, 0, false, nil}},
		{"async, a wait for an update, three ranks", false, play{"consistency=async preemptions=1", []string{"W", "p", ""}, 0, false, nil}},
		{"async, a wait for an update, plain stores", false, play{"consistency=async", []string{"W", "p"}, 0, true, nil}},
		{"sparse", false, play{"consistency=async sparse=model", []string{"ppp", "tt"}, 0, false, nil}},
		{"sparse, longer", true, play{"consistency=async sparse=model", []string{"pppp", "tt"}, 0, false, nil}},
		{"sparse, two readers", true, play{"consistency=async sparse=model graph=lists:1,2// allow_disconnected=true", []string{"pp", "t", "tt"}, 0, false, nil}},
		{"sparse, dead reader", false, play{"consistency=async sparse=model", []string{"pp", "t"}, 1, false, nil}},
		{"sparse, bsp", false, play{"consistency=bsp sparse=model", []string{"ss", "ss"}, 0, false, nil}},
		{"sparse, bsp, uneven", false, play{"consistency=bsp sparse=model", []string{"sb", "sssb"}, 0, false, nil}},
		{"sparse, notify-ack", false, play{"consistency=notify-ack sparse=model", []string{"ss", "ss"}, 0, false, nil}},
	} {
		explore.Case(t, c.name, c.large, c.play.run)
	}
}

package core

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"malt/internal/say"
	"malt/libmalt/reduce"
	"malt/rdma"
)

// Settling is how the survivors on several hosts agree on what a dead rank took part in. On
// one host a dead rank's words lie in memory that all ranks map, so all find the same there.
// Several hosts have a copy each, and the last messages of the dead rank may have reached some
// hosts and not others. A rank that is left out alive, after a cut, is the same case.
//
// A rank that learns of a new view freezes: no collective call and no gather in lock-step
// completes until the rank has settled in that view. The members of the view tell each other
// where they are: the last collective call that has completed here, and the one under way; and
// of each object in lock-step, and each rank that is left out, the clock of the update that was
// folded last. All members compute the same from what they were told:
//
//   - A collective call that some member has completed counts as completed, with the ranks that
//     took part there. A member that is still in that call gets the result from the lowest
//     member that has it. If no member has completed the call, all begin it again, as another
//     attempt (attempt.go), without the ranks that are left out.
//
//   - A rank that is left out counts in an object up to the newest clock that some member has
//     folded. A member that lacks the update of that clock gets it from the lowest member that
//     has folded it. Later updates are folded by nobody.
//
//   - A sync on a route counts as completed if it is at some member: one that is still in it gets
//     the result from the lowest member that has it. If no member has completed the sync, all
//     take their boxes instead. To settle, a route is one more rank that is left out (RouteRank),
//     whose updates are the results.
//
// A member is at most one call, and one clock, behind another: the next one needs it. So it is
// enough that each keeps its last result, and the last update that it has folded, until its
// next call or gather completes.
//
// All this is a function of where the members are, and not of how they came there. If the view
// changes meanwhile, settling begins again: a member that had settled already takes part like
// any other, and what it was given counts as its own.
//
// A rank that has left in good order is not asked, and takes along what it alone had.
//
// Each member has a queue for this, so that messages of calls stay where they are. In it come,
// marked with the generation of the view: where the member is; what it forwards, in an order
// that all know; and the end of that. Members read all of them before they go on, so that no
// queue is left full.
type settling struct {
	job *Job
	out rdma.Outbox
	in  []incoming // by rank; this rank's own has what it has told itself

	// The rest belongs to mu: gathers and a collective call may be on several goroutines.
	mu      sync.Mutex
	view    rdma.View // in which this rank is settled once done
	done    bool
	told    bool     // where this rank is
	planned bool     // so have all members, and it is known who forwards what
	parcels []parcel // to be sent
	late    []int    // members that the last step lacked
	self    *Member  // whose gather takes this step
	leaves  bool     // this rank is in Close, which has locked the gates of all objects
	// settledIn is the generation of view once done, for those without mu.
	settledIn atomic.Uint64

	call   *Collective // under way
	ending bool        // it has completed, and last does not say so yet
	last   *outcome    // of the call that completed last
	given  *outcome    // of call, by another member
}

// incoming is what comes from one member.
type incoming struct {
	inbox rdma.Inbox
	next  rdma.Update // not consumed yet, if has
	has   bool

	said   []byte // where it is
	whole  bool   // that is all there
	left   bool   // it has left in good order, and says nothing
	ended  bool   // it has forwarded all
	items  []item // that it forwards to this rank; the first may be under way
	head   []byte // of that, as far as it has come
	headed bool   // that is all there
	dst    [][]byte
	update rdma.Update

	forwards bool // it is to forward something
	unwanted bool // what follows the header is of no use
}

// parcel is a run of messages to the same ranks.
type parcel struct {
	item   *item    // nil: its pieces are there already
	pieces [][]byte // what is left to send
	kind   uint16   // of the last message
	to     []int    // nil: all
}

// Kinds of messages.
const (
	kindMore = iota // a part of where a member is, or of an item
	kindLast        // the last part
	kindDone        // the member has forwarded all
)

// item is what one member forwards to others: the result of a call, or an update of a rank
// that is left out.
type item struct {
	holder int
	to     []int
	call   uint64 // whose result it is; 0: it is an update
	stand  Stand
}

// Lockstep is a Body whose gathers may be in lock-step. Its gate is locked.
type Lockstep interface {
	// Stand tells where this rank is with the updates of rank, or of its route; false: it
	// reads none.
	Stand(rank int) (Stand, bool)
	// Held is an update of rank that was folded; none if others must not get it.
	Held(rank int, clock uint64) rdma.Update
}

// Stand is where a rank is, with an object in lock-step, as to the updates of another one.
type Stand struct {
	ID     uint32
	Rank   int
	Due    uint64 // clock of the next gather
	Folded uint64 // clock of the update that was folded last
	Has    bool   // the update for the next gather is here, or there is none for this rank
}

// RouteRank stands for the route of an object among the ranks that are left out.
func (j *Job) RouteRank() int { return j.Size }

const standBytes = 4 + 4 + 8 + 8 + 1

// counted is up to where a rank that is left out counts in an object.
type counted struct {
	clock uint64
	given rdma.Update // the update of that clock, if another member had to give it
}

// settle has j settle when its view changes. The first view needs none.
func (j *Job) settle(out rdma.Outbox) *settling {
	s := &settling{job: j, out: out, in: make([]incoming, j.Size), view: rdma.Everyone(j.Size), done: true}
	s.settledIn.Store(s.view.Generation)
	return s
}

var settlingSpec = rdma.Spec{Bytes: ChunkBytes, Mode: rdma.Queue(2), About: "settling"}

// PublishSettling makes this rank's queue to the others, before the first collective call: so
// that all have made theirs once that is over.
func (j *Job) PublishSettling(ctx context.Context) (err error) {
	j.settlingOut, err = j.T.Publish(ctx, "settling", settlingSpec, rdma.Everyone(j.Size).Others(j.Rank))
	return err
}

// joinSettling connects this rank to the queues of the others. A rank that is gone by now is
// not needed.
func (j *Job) joinSettling(ctx context.Context) error {
	senders := rdma.Everyone(j.Size).Others(j.Rank)
	for {
		inboxes, err := j.T.Subscribe(ctx, "settling", settlingSpec, senders)
		dead := DeathIn(err)
		all := len(senders)
		senders = slices.DeleteFunc(senders, func(r int) bool {
			return dead != nil && r == dead.Rank || errors.Is(err, rdma.ErrLeft) && errors.Is(j.T.State(r), rdma.ErrLeft)
		})
		if len(senders) < all {
			continue
		}
		s := j.settle(j.settlingOut)
		for _, in := range inboxes {
			s.in[in.From()].inbox = in
		}
		if err == nil {
			j.settling = s
		}
		return err
	}
}

// Settles tells whether survivors have to settle.
func (j *Job) Settles() bool { return j.settling != nil }

// Settled is asked by a gather of m in lock-step, before it takes anything: the generation of
// the view in which this rank is settled. 0: it is not; late are the ranks to wait for.
func (j *Job) Settled(m *Member) (late []int, generation uint64, err error) {
	s := j.settling
	s.mu.Lock()
	defer s.mu.Unlock()
	if ok, err := s.step(m); err != nil || !ok {
		return slices.Clone(s.late), 0, err
	}
	return nil, s.view.Generation, nil
}

// Help is for calls that do not wait until this rank is settled: members that do may need what
// this rank can tell and has. m is the object of the call, whose gate is locked; nil: none.
func (j *Job) Help(m *Member) error {
	s := j.settling
	if s == nil || s.settledIn.Load() == j.views.View().Generation {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, err := s.step(m)
	return err
}

// Counted is up to which clock rank, which is left out, counts in m, and the update of that
// clock, if another member has given it.
func (m *Member) Counted(rank int) (clock uint64, given rdma.Update) {
	s := m.Job.settling
	s.mu.Lock()
	defer s.mu.Unlock()
	c := m.counted[rank]
	return c.clock, c.given
}

// Over tells, at the end of a gather at clock, whether nobody can ask for an update of rank any
// more. Then what another member has given is forgotten.
func (m *Member) Over(rank int, clock uint64) bool {
	s := m.Job.settling
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.counted[rank].clock >= clock {
		return false
	}
	delete(m.counted, rank)
	return true
}

// Freed is called when the gate of an object is open again.
func (j *Job) Freed() {
	if s := j.settling; s != nil && s.settledIn.Load() != j.views.View().Generation {
		j.T.Wake()
	}
}

// unfinished tells whether others may need this rank to settle.
func (s *settling) unfinished() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told && !s.done
}

// step does what can be done, and tells whether this rank is settled in the newest view. self
// is the object whose gather asks; nil: a collective call does.
func (s *settling) step(self *Member) (bool, error) {
	s.self = self
	if v := s.job.views.View(); v.Generation != s.view.Generation {
		s.begin(v)
	}
	if s.late = s.late[:0]; s.done {
		return true, nil
	}
	if !s.view.Has(s.job.Rank) || !s.told && !s.tell() {
		return false, nil
	}
	for {
		if err := s.send(); err != nil {
			return false, err
		}
		all, moved, err := s.receive()
		switch {
		case err != nil:
			return false, err
		case all && !s.planned:
			if err := s.plan(); err != nil {
				return false, err
			}
		case all && len(s.parcels) == 0:
			s.done = true
			s.settledIn.Store(s.view.Generation)
			s.job.T.Wake() // another goroutine may wait for this
			return true, nil
		case !moved:
			return false, nil
		}
	}
}

// begin begins to settle in v.
func (s *settling) begin(v rdma.View) {
	s.view, s.done, s.told, s.planned, s.parcels, s.given = v, false, false, false, nil, nil
	for r := range s.in {
		in := &s.in[r]
		s.in[r] = incoming{inbox: in.inbox, next: in.next, has: in.has}
	}
}

// tell sends where this rank is, once no call is between two states.
func (s *settling) tell() bool {
	ready := !s.ending
	for _, m := range s.job.open() {
		if body, ok := m.Body.(Lockstep); ok && m.stands.generation != s.view.Generation && !s.look(m, body) {
			ready = false
		}
	}
	if !ready {
		return false // Freed, or the end of the call, wakes this rank
	}
	b := binary.LittleEndian.AppendUint64(nil, s.last.number())
	b = binary.LittleEndian.AppendUint64(b, s.call.number())
	for _, m := range s.job.open() {
		for _, at := range m.stands.of {
			b = binary.LittleEndian.AppendUint32(b, at.ID)
			b = binary.LittleEndian.AppendUint32(b, uint32(at.Rank))
			b = binary.LittleEndian.AppendUint64(b, at.Due)
			b = binary.LittleEndian.AppendUint64(b, at.Folded)
			b = append(b, 0)
			if at.Has {
				b[len(b)-1] = 1
			}
		}
	}
	own := &s.in[s.job.Rank]
	own.said, own.whole, s.told = b, true, true
	if len(s.view.Ranks) > 1 {
		s.parcels = []parcel{{pieces: [][]byte{b}, kind: kindLast}}
	}
	return true
}

// look notes where this rank is with m; false: a call is inside that object.
func (s *settling) look(m *Member, body Lockstep) bool {
	if !s.inside(m) {
		if !m.Gate.Borrow() {
			return false
		}
		defer m.Gate.GiveBack()
		m.Body.CatchUp()
	}
	m.stands.generation, m.stands.of = s.view.Generation, m.stands.of[:0]
	for r := range s.job.RouteRank() + 1 {
		if s.view.Has(r) {
			continue
		}
		if at, ok := body.Stand(r); ok {
			given := m.counted[r].given
			at.ID, at.Rank, at.Has = m.ID, r, at.Has || given.Data != nil && given.Clock == at.Due
			m.stands.of = append(m.stands.of, at)
		}
	}
	return true
}

// inside tells whether the gate of m is locked by the gather that takes this step, by the
// collective call under way, or by Close.
func (s *settling) inside(m *Member) bool {
	return m == s.self || s.leaves || m.alone.Load() && s.call != nil
}

// send sends what fits into the queue.
func (s *settling) send() error {
	for len(s.parcels) > 0 {
		p := &s.parcels[0]
		if p.item != nil && !s.open(p) {
			return nil // Freed wakes this rank
		}
		b, err := s.out.Begin()
		if b == nil || err != nil {
			return err
		}
		n := 0
		for len(p.pieces) > 0 {
			k := reduce.Copy(b[n:], p.pieces[0])
			n += k
			if p.pieces[0] = p.pieces[0][k:]; len(p.pieces[0]) > 0 {
				break
			}
			p.pieces = p.pieces[1:]
		}
		kind := p.kind
		if len(p.pieces) > 0 {
			kind = kindMore
		}
		if err := s.out.Commit(n, rdma.Stamp{Tag: s.view.Generation, Kind: kind}, p.to); err != nil {
			return err
		}
		if len(p.pieces) == 0 {
			s.parcels = s.parcels[1:]
		}
	}
	return nil
}

// receive takes what has come. all: nothing more is to come before the next stage.
func (s *settling) receive() (all, moved bool, err error) {
	all = true
	for _, r := range s.view.Ranks {
		in := &s.in[r]
		for r != s.job.Rank && s.wants(in) {
			there, err := s.peek(r)
			if err != nil {
				return false, moved, err
			}
			if !there {
				if !in.left {
					all = false
					s.late = append(s.late, r)
				}
				break
			}
			moved = true
			b, kind := in.next.Data, in.next.Kind
			switch {
			case kind == kindDone:
				in.ended = true
			case !in.whole:
				in.said, in.whole = append(in.said, b...), kind == kindLast
			case b != nil:
				err = s.take(in, b, kind == kindLast)
			}
			in.inbox.Release(in.next.Seq)
			if in.has = false; err != nil {
				return false, moved, err
			}
		}
	}
	return all, moved, nil
}

// wants tells whether something is still to come from a member, in this stage.
func (s *settling) wants(in *incoming) bool {
	return !in.left && (!in.whole || s.planned && in.forwards && !in.ended)
}

// peek makes the next message of this view the next one of rank, if it has come.
func (s *settling) peek(rank int) (bool, error) {
	for in := &s.in[rank]; ; {
		if !in.has {
			state := s.job.T.State(rank) // before Next: what it has said before it left counts
			var err error
			if in.next, in.has, err = in.inbox.Next(); err != nil {
				return false, err
			}
			if !in.has {
				in.left = errors.Is(state, rdma.ErrLeft)
				return false, nil
			}
		}
		if in.next.Tag >= s.view.Generation {
			return in.next.Tag == s.view.Generation, nil // else this rank hears of that view soon
		}
		in.inbox.Release(in.next.Seq)
		in.has = false
	}
}

var errSettling = say.Errorf(rdma.ErrCorrupt, "a rank that settles sent what cannot be")

// claim is what one member has told of an object.
type claim struct {
	Stand
	from int
}

// plan finds out, when all have told where they are, what counts, and who forwards what.
func (s *settling) plan() error {
	var claims []claim
	var newest uint64
	for _, r := range s.view.Ranks {
		b := s.in[r].said
		if s.in[r].left {
			continue
		}
		if len(b) < 16 || (len(b)-16)%standBytes != 0 {
			return errSettling
		}
		newest = max(newest, binary.LittleEndian.Uint64(b))
		for b = b[16:]; len(b) > 0; b = b[standBytes:] {
			claims = append(claims, claim{Stand{
				binary.LittleEndian.Uint32(b), int(binary.LittleEndian.Uint32(b[4:])),
				binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]), b[24] != 0,
			}, r})
		}
	}
	result := item{holder: -1, call: newest}
	for _, r := range s.view.Ranks {
		switch b := s.in[r].said; {
		case s.in[r].left:
		case binary.LittleEndian.Uint64(b) == newest && result.holder < 0:
			result.holder = r
		case newest > 0 && binary.LittleEndian.Uint64(b[8:]) == newest:
			result.to = append(result.to, r)
		}
	}
	s.forward(result)
	slices.SortStableFunc(claims, func(a, b claim) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Rank, b.Rank))
	})
	for len(claims) > 0 {
		n := 1
		for n < len(claims) && claims[n].ID == claims[0].ID && claims[n].Rank == claims[0].Rank {
			n++
		}
		s.count(claims[:n])
		claims = claims[n:]
	}
	if s.in[s.job.Rank].forwards {
		s.parcels = append(s.parcels, parcel{kind: kindDone})
	}
	s.planned = true
	s.job.T.Wake() // a gather on another goroutine may have to forward what it has
	return nil
}

// count settles up to where a rank that is left out counts in an object, of which these are
// the claims of all members that have it open.
func (s *settling) count(claims []claim) {
	it := item{holder: claims[0].from, stand: claims[0].Stand}
	for _, c := range claims {
		if c.Folded > it.stand.Folded {
			it.holder, it.stand = c.from, c.Stand
		}
	}
	folded := it.stand.Folded
	for _, c := range claims {
		if c.Folded < folded && (c.Due < folded || c.Due == folded && !c.Has) {
			it.to = append(it.to, c.from)
		}
	}
	if m := s.member(it.stand.ID); m != nil {
		if m.counted == nil {
			m.counted = map[int]counted{}
		}
		m.counted[it.stand.Rank] = counted{folded, m.counted[it.stand.Rank].given}
	}
	s.forward(it)
}

// member is the object of that number; nil: this rank has it no longer.
func (s *settling) member(id uint32) *Member {
	for _, m := range s.job.open() {
		if m.ID == id {
			return m
		}
	}
	return nil
}

// forward plans to have an item forwarded, if a member needs it.
func (s *settling) forward(it item) {
	if len(it.to) == 0 {
		return
	}
	in := &s.in[it.holder]
	in.forwards = true
	switch {
	case it.holder == s.job.Rank:
		s.parcels = append(s.parcels, parcel{item: &it, kind: kindLast, to: it.to})
	case slices.Contains(it.to, s.job.Rank):
		in.items = append(in.items, it)
	}
}

// open makes the pieces of an item: a header, with its length in front, and the data. false:
// a call is inside the object.
func (s *settling) open(p *parcel) bool {
	it := p.item
	b := make([]byte, 8)
	if it.call > 0 {
		b = s.last.header(b, s.view, s.job.Size)
		p.pieces = append([][]byte{b}, s.last.pieces...)
	} else {
		u, ok := s.held(it)
		if !ok {
			return false
		}
		for _, v := range []uint64{u.Clock, u.Age, u.Tag, uint64(u.Kind), math.Float64bits(u.Weight), u.Seq, uint64(len(u.Data))} {
			b = binary.LittleEndian.AppendUint64(b, v)
		}
		p.pieces = [][]byte{b, u.Data}
	}
	binary.LittleEndian.PutUint64(b, uint64(len(b)-8))
	p.pieces[0], p.item = b, nil
	return true
}

// held is the update that it is about: none, where this rank has closed the object since.
func (s *settling) held(it *item) (u rdma.Update, ok bool) {
	m := s.member(it.stand.ID)
	if m == nil {
		return u, true
	}
	if u = m.counted[it.stand.Rank].given; u.Data != nil && u.Clock == it.stand.Folded {
		return u, true
	}
	body, ok := m.Body.(Lockstep)
	if !ok {
		return u, true
	}
	if !s.inside(m) {
		if !m.Gate.Borrow() {
			return u, false
		}
		defer m.Gate.GiveBack()
	}
	return body.Held(it.stand.Rank, it.stand.Folded), true
}

// take takes what is forwarded to this rank. last: the item is complete.
func (s *settling) take(in *incoming, b []byte, last bool) error {
	if len(in.items) == 0 {
		return errSettling
	}
	it := &in.items[0]
	for len(b) > 0 {
		switch want := 8; {
		case !in.headed:
			if len(in.head) >= 8 {
				want += int(min(binary.LittleEndian.Uint64(in.head), 1<<32))
			}
			n := min(len(b), want-len(in.head))
			in.head, b = append(in.head, b[:n]...), b[n:]
			if len(in.head) < want || want == 8 {
				continue
			}
			in.headed = true
			var err error
			if in.dst, err = s.room(in, it); err != nil {
				return err
			}
		case in.unwanted:
			b = nil
		case len(in.dst) == 0:
			return errSettling
		default:
			n := reduce.Copy(in.dst[0], b)
			in.dst[0], b = in.dst[0][n:], b[n:]
		}
		for len(in.dst) > 0 && len(in.dst[0]) == 0 {
			in.dst = in.dst[1:]
		}
	}
	if !last {
		return nil
	}
	if !in.headed || len(in.dst) > 0 {
		return errSettling
	}
	if m := s.member(it.stand.ID); it.call == 0 && m != nil && !in.unwanted {
		m.counted[it.stand.Rank] = counted{it.stand.Folded, in.update}
	} else if it.call > 0 && s.given != nil {
		s.given.whole = true
	}
	in.items, in.head, in.headed, in.unwanted = in.items[1:], nil, false, false
	return nil
}

// room is where the data of an item go that follow its header, which has come.
func (s *settling) room(in *incoming, it *item) ([][]byte, error) {
	b := in.head[8:]
	if it.call > 0 {
		if in.unwanted = s.call.number() != it.call; in.unwanted { // it has been given up
			return nil, nil
		}
		given, lengths, err := readOutcome(b, s.view, s.job.Size)
		if err != nil {
			return nil, err
		}
		given.at, s.given = it.call, given
		return s.call.sink.Give(s.call, given.view.Ranks, lengths)
	}
	if len(b) != 7*8 {
		return nil, errSettling
	}
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }
	in.update = rdma.Update{Stamp: rdma.Stamp{Clock: at(0), Age: at(1), Tag: at(2), Kind: uint16(at(3)), Weight: math.Float64frombits(at(4))}, Seq: at(5)}
	in.unwanted = in.update.Clock != it.stand.Folded
	if at(6) > 1<<47 {
		return nil, errSettling
	}
	var err error
	if in.update.Data, err = s.job.Room(it.holder, at(6)); err != nil || len(in.update.Data) == 0 {
		return nil, err
	}
	return [][]byte{in.update.Data}, nil
}

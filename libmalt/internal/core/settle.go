package core

import (
	"context"
	"errors"
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
// of each object in lock-step or with totals, and each rank that is left out, the clock of the update
// that was folded last. All members compute the same from what they were told:
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
// A rank that closes an object keeps what it has of others until its next collective call is
// over: all ranks come to that after their last gather.
//
// A rank that has left in good order is not asked, and takes along what it alone had: so it does not
// leave before the others have come as far (Job.linger).
//
// Each member has a queue for this, so that messages of calls stay where they are. In it come,
// marked with the generation of the view: where the member is (settle_plan.go); what it
// forwards, in an order that all know (settle_forward.go); and the end of that. Members read
// all of them before they go on, so that no queue is left full.
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

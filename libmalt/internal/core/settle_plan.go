package core

import (
	"cmp"
	"encoding/binary"
	"slices"

	"malt/rdma"
)

// Lockstep is a Body whose gathers may be in lock-step. Its gate is locked.
type Lockstep interface {
	// Settles tells whether members settle on its updates: its gathers are in lock-step, or count totals,
	// and then do not wait for that.
	Settles() bool
	// Stand tells where this rank is with the updates of rank, or of its route; false: it
	// reads none.
	Stand(rank int) (Stand, bool)
	// Held is an update of rank that was folded; none if others must not get it.
	Held(rank int, clock uint64) rdma.Update
	// Quit closes this rank's boxes, so that the others no longer wait for it. Theirs stay until Leave.
	Quit() error
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

// encode appends standBytes that decodeStand reads.
func (at Stand) encode(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, at.ID)
	b = binary.LittleEndian.AppendUint32(b, uint32(at.Rank))
	b = binary.LittleEndian.AppendUint64(b, at.Due)
	b = binary.LittleEndian.AppendUint64(b, at.Folded)
	if at.Has {
		return append(b, 1)
	}
	return append(b, 0)
}

func decodeStand(b []byte) Stand {
	return Stand{
		binary.LittleEndian.Uint32(b), int(binary.LittleEndian.Uint32(b[4:])),
		binary.LittleEndian.Uint64(b[8:]), binary.LittleEndian.Uint64(b[16:]), b[24] != 0,
	}
}

// counted is up to where a rank that is left out counts in an object.
type counted struct {
	clock uint64
	given rdma.Update // the update of that clock, if another member had to give it
}

// tell sends where this rank is, once no call is between two states.
func (s *settling) tell() bool {
	ready := !s.ending
	for _, m := range s.job.asked() {
		if body, ok := m.Body.(Lockstep); ok && m.stands.generation != s.view.Generation && !s.look(m, body) {
			ready = false
		}
	}
	if !ready {
		return false // Freed, or the end of the call, wakes this rank
	}
	b := binary.LittleEndian.AppendUint64(nil, s.last.number())
	b = binary.LittleEndian.AppendUint64(b, s.call.number())
	for _, m := range s.job.asked() {
		for _, at := range m.stands.of {
			b = at.encode(b)
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
		if m.Open {
			m.Body.CatchUp()
		}
	}
	m.stands.generation, m.stands.of = s.view.Generation, m.stands.of[:0]
	for r := range s.job.RouteRank() + 1 {
		if s.view.Has(r) {
			continue
		}
		if at, ok := body.Stand(r); ok {
			given := m.counted[r].given
			at.ID, at.Rank, at.Has = m.ID, r, at.Has || given.Data != nil && given.Clock == at.Due
			if given.Data != nil && given.Clock > at.Due { // a gather to come takes it, and does not wait until all have settled
				at.Folded = given.Clock
			}
			m.stands.of = append(m.stands.of, at)
		}
	}
	return true
}

// inside tells whether the gate of m is locked by the gather that takes this step, by the
// collective call under way, or by Close. Another goroutine may be in the gate before or after
// its own call, and change what this rank is asked for.
func (s *settling) inside(m *Member) bool {
	return m == s.self || s.leaves || s.call != nil && s.call.inside == m
}

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
			claims = append(claims, claim{decodeStand(b), r})
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
	for _, m := range s.job.asked() {
		if m.ID == id {
			return m
		}
	}
	return nil
}

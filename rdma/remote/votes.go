package remote

import (
	"sync"
	"sync/atomic"

	"malt/rdma/vote"
)

// mostVotes is how many bytes of votes may wait for a connection that is slow. Those that
// are dropped are sent again by their senders.
const mostVotes = 64 << 10

// votes are frames that wait for a round.
type votes struct {
	due    atomic.Bool // they do, or else a beat is
	mu     sync.Mutex
	frames []byte
	n      uint64
}

// votes tells whether a frame is a message of package vote.
func (k kind) votes() bool { return k >= kind(vote.First) && k <= kind(vote.Last) }

// Post sends a frame of package vote soon, before updates, and between the frames of one
// that is under way. It never waits. Without a connection, or over one that takes nothing,
// it is dropped: senders repeat.
func (t *Transport) Post(peer int, k vote.Kind, arg uint32, body []byte) {
	l := t.links[peer]
	if l == nil {
		return
	}
	s := l.session.Load()
	if s == nil {
		return
	}
	s.votes.mu.Lock()
	if len(s.votes.frames)+frameBytes+len(body) <= mostVotes {
		h := header{kind: kind(k), length: uint32(len(body)), arg: arg}
		s.votes.frames = append(h.append(s.votes.frames), body...)
		s.votes.n++
	}
	s.votes.mu.Unlock()
	s.votes.due.Store(true)
	l.kick()
}

// sendVotes sends what was posted, or else a beat if one is due.
func (s *session) sendVotes() {
	v := &s.votes
	if !v.due.Load() {
		return
	}
	v.due.Store(false) // before the look
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.n == 0 {
		s.frame(beat, 0, 0, 0)
	}
	s.out = append(s.out, v.frames...)
	s.posted.Add(v.n)
	v.frames, v.n = v.frames[:0], 0
}

// landVote hands a frame over. Before Survive it is dropped: its sender may be ahead.
func (l *link) landVote(h header, b []byte) error {
	if m := l.rank.survivors(); m != nil {
		return m.Land(l.peer, vote.Kind(h.kind), h.arg, b)
	}
	return nil
}

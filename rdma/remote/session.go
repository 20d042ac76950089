package remote

import (
	"sync"
	"sync/atomic"
	"time"

	"malt/rdma/box"
	"malt/rdma/fabric"
)

// session is what belongs to one connection: it is made with it and ends with it. What
// outlives it, such as how far a replica has landed, is the link's, or of what the link
// has in its tables.
type session struct {
	link *link
	conn *conn
	in   *input        // what comes
	stop chan struct{} // closed when nothing more comes

	resumed atomic.Bool // the peer has said where it is with each box
	idle    atomic.Bool // the sending goroutine sleeps

	posted, recorded, landed atomic.Uint64 // frames, records, and both

	votes votes
	pulse pulse // of the goroutine that beats

	theirs atomic.Pointer[greeting] // by whoever lands
	ring   atomic.Pointer[ring]     // nil: the cards are no pair
	tended atomic.Bool              // the ring and the writes are to be looked after
	asked  atomic.Bool              // the peer has yet to answer
	asking atomic.Bool              // it wants an answer

	// What follows is of the goroutine whose turn it is: the sending one, or one
	// that has something small to send (eager.go).
	turn      sync.Mutex
	ended     bool
	gathering bool   // nothing is written yet
	out       []byte // frames to be written
	version   uint64 // of the link's tables
	buried    int    // deaths that the peer was told of
	told      bool   // the peer was told where this rank is
	waiting   bool   // a round has begun, and goes on when the link is kicked
	overdue   overdue

	relays   []*relaySession
	words    []*wordsSession
	replicas []*replicaSession
	remotes  []*remoteSession
}

// relaySession is a relay over this connection.
type relaySession struct {
	*relay
	announced, subscribed bool
	closed                int    // open, withdrawn or final
	clock, published      uint64 // that the reader was told
	answered              uint64 // the demand that the reader was answered

	// Of this round.
	progress box.Progress
	due      bool

	// The update that is being sent.
	head  box.Header
	first bool // its first frame is still to come
	mine  bool
	busy  bool
	rest  []byte
	at    box.Progress

	placing placing
	into    placement     // of that update
	from    fabric.Region // in which it lies, if it has a room
}

// wordsSession is a wordsRelay over this connection.
type wordsSession struct {
	*wordsRelay
	announced, withdrawn bool
	started              bool
	ask, askTold         uint64
	sent                 []uint64
	now                  []uint64 // what this round will have sent
	changed, wake        bool
}

// replicaSession is what the owner of a replica is told over this connection.
type replicaSession struct {
	*replica
	subscribed         bool
	acked              uint64
	told               bool // that it can forget us
	demand, demandTold uint64
	unplaced           bool // there is no memory for rooms
}

// remoteSession is what the owner of words is told over this connection.
type remoteSession struct {
	*remoteWords
	told     bool
	answered uint64
}

// newSession makes c the link's connection, unless the link stops: then c ends.
func (l *link) newSession(c *conn) *session {
	s := &session{link: l, conn: c, in: newInput(c), stop: make(chan struct{}), out: make([]byte, 0, 2*flushAt)}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= stopping {
		c.Close()
		return nil
	}
	c.again = l.stuck
	l.silence, l.counted = 0, time.Now()
	l.session.Store(s)
	if l.state == opening {
		l.rank.wire.Settle(l.peer, c.Conn)
	}
	l.become(connected)
	return s
}

// refresh takes over the link's tables when they have changed.
func (s *session) refresh() {
	l := s.link
	if l.version.Load() == s.version {
		return
	}
	l.rank.mu.Lock()
	defer l.rank.mu.Unlock()
	s.version = l.version.Load()
	s.relays = follow(s.relays, l.relays, func(x *relaySession) *relay { return x.relay },
		func(x *relay) *relaySession { return &relaySession{relay: x} })
	s.words = follow(s.words, l.words, func(w *wordsSession) *wordsRelay { return w.wordsRelay },
		func(w *wordsRelay) *wordsSession { return &wordsSession{wordsRelay: w, askTold: w.heard.Load()} })
	s.replicas = follow(s.replicas, l.replicas, func(p *replicaSession) *replica { return p.replica },
		func(p *replica) *replicaSession { return &replicaSession{replica: p, demandTold: p.met.Load()} })
	s.remotes = follow(s.remotes, l.remotes, func(p *remoteSession) *remoteWords { return p.remoteWords },
		func(p *remoteWords) *remoteSession { return &remoteSession{remoteWords: p} })
}

// follow brings known up to a table, to the end of which new entries are added.
func follow[S, T comparable](known []S, table []T, of func(S) T, begin func(T) S) []S {
	now := make([]S, len(table))
	for i, x := range table {
		for len(known) > 0 && of(known[0]) != x {
			known = known[1:] // it has left the table
		}
		if len(known) == 0 {
			now[i] = begin(x)
		} else {
			now[i], known = known[0], known[1:]
		}
	}
	return now
}

package remote

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"malt/rdma"
)

// link is what this rank has with one peer for as long as both take part, over
// one connection after the other. Its goroutine makes connections (connect.go)
// and lands what comes, or leaves that to somebody who looks for it (land.go), so
// that a replica has one writer at a time; another, one per connection, sends
// (send.go).
type link struct {
	rank *rank
	peer int
	ctx  context.Context // ends with the link
	quit context.CancelFunc

	up    chan struct{} // closed at the first connection
	ended chan struct{} // closed when no goroutine of the link is left

	session atomic.Pointer[session] // of the connection; nil: there is none. Set under mu
	wake    chan struct{}           // has an element, or the sender is awake
	spoken  chan struct{}           // has an element once the last word is on its way
	dirty   atomic.Bool             // there may be something to send
	news    chan struct{}           // has an element when the peer's card may have brought something

	leaving  atomic.Bool
	probing  atomic.Bool // somebody dials, since nothing is heard of the peer
	aborting atomic.Pointer[rdma.PeerError]
	// The peer counts as dead by what others say (hearsay.go), or since it is left out
	// (survive.go), once the link has ended.
	condemned atomic.Pointer[rdma.PeerError]
	parting   atomic.Bool   // only what was posted is still sent, since the peer is left out
	lastWord  atomic.Bool   // the link ends by what the peer has said
	farewell  atomic.Uint32 // its, once it has left

	off                        atomic.Pointer[error] // why no payload goes past the connection any more
	sentPlaced, receivedPlaced atomic.Uint64         // bytes that did
	starved                    atomic.Bool           // a record waits for the end of a write
	begun                      uint64                // writes of the card; card.mu
	turned                     bool                  // away: one has yet to begin; card.mu

	// rank.mu guards the tables. relays, words, replicas and remotes are what the
	// sender goes through; whenever one changes, version does.
	version  atomic.Uint64
	relays   []*relay
	words    []*wordsRelay
	replicas []*replica
	remotes  []*remoteWords
	kept     int // bytes of what the peer has announced

	// Of whoever lands.
	lastBox, lastWords uint32 // the largest numbers that the peer has announced
	malformed          int    // connections that ended so, one after the other
	mourned            []bool // ranks of which the peer has said that they are dead
	said               bool   // that this rank has left, though perhaps unheard

	mu             sync.Mutex
	state          state
	incoming       *conn // has passed the handshake, and waits for the goroutine
	arrived        chan struct{}
	incarnation    uint64        // of the peer's process; 0 before the first connection
	silence        time.Duration // for how long the peer's host had not been heard of,
	counted        time.Time     // then,
	noWay          error         // and the last that said why; nil: nothing did
	why            error         // of the last attempt that failed
	closed         bool          // the last one was closed by the peer
	stuck          bool          // nothing of what was under way over it was acknowledged for a while
	sent, received uint64        // bytes of earlier connections
}

// state is how far a link has come.
type state uint8

const (
	opening   state = iota // there has been no connection yet
	connected              // it has a session
	broken                 // its session has ended, and another one is to begin
	stopping               // no other one begins
	over                   // nothing is entered into its tables any more
)

// become is the only place that changes the state; mu is held. A link that stops
// remains so, whatever becomes of its connection.
func (l *link) become(to state) {
	was := l.state
	if to < was && was >= stopping {
		return
	}
	l.state = to
	switch {
	case to >= stopping:
		l.quit()
	case was == opening:
		close(l.up)
	}
}

// is tells whether the link is in that state.
func (l *link) is(s state) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state == s
}

func (r *rank) addLink(peer int) *link {
	l := newLink(r, peer)
	r.links[peer], r.peers = l, append(r.peers, l)
	if peer < r.cfg.Size {
		r.ranks = r.peers
	}
	return l
}

func newLink(r *rank, peer int) *link {
	l := &link{
		rank: r, peer: peer, up: make(chan struct{}), ended: make(chan struct{}),
		wake: make(chan struct{}, 1), news: make(chan struct{}, 1), spoken: make(chan struct{}, 1), arrived: make(chan struct{}, 1),
	}
	l.ctx, l.quit = context.WithCancel(context.Background())
	return l
}

// kick has the sender look for something to send.
func (l *link) kick() {
	l.dirty.Store(true)
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// run is the link's goroutine.
func (l *link) run() {
	defer close(l.ended)
	for first := true; ; first = false {
		s, end := l.connect()
		if end != nil && l.said {
			end = errClosing // the peer has heard it, or is gone
		}
		if end == nil {
			end = l.serve(s)
		}
		if end != nil {
			l.finish(end)
			if first && s == nil {
				l.rank.failed <- l
			}
			return
		}
	}
}

// errPeerLeft: the peer has said so.
var errPeerLeft = errors.New("the peer has left")

// errPosted: the last frame has been sent.
var errPosted = errors.New("this rank has sent its last message")

// tooMalformed is how many connections, one after the other, may end because
// what the peer sent cannot be. One is what a fault of the network does.
const tooMalformed = 5

// serve works with the link's connection until it ends; nil where another one should
// be made.
func (l *link) serve(s *session) (end error) {
	c, stopped := s.conn, make(chan error, 1)
	go func() {
		err := s.send()
		if !errors.Is(err, errPosted) && !errors.Is(err, errStopped) {
			c.Close()
		}
		stopped <- err
	}()
	landed := s.land()
	close(s.stop)
	var dead *rdma.PeerError
	left := errors.Is(landed, errPeerLeft)
	if !left {
		c.Close()
	} else {
		_ = c.SetWriteDeadline(time.Unix(1, 0)) // nobody needs it any more
	}
	posted := <-stopped
	if left {
		_ = l.unpair(errPeerLeft)
	}
	s.abandon()
	if left {
		// The peer waits for this end, so as to know that all has landed.
		_ = c.CloseWrite()
		_ = c.SetReadDeadline(time.Now().Add(l.rank.cfg.Unreachable))
		_, _ = io.Copy(io.Discard, c)
		c.Close()
	}
	over := l.finishConn(c, errors.Join(landed, posted))
	l.lastWord.Store(left || errors.As(landed, &dead))
	switch {
	case left:
		return rdma.ErrLeft
	case dead != nil:
		return landed
	case over:
		return errClosing
	case errors.Is(posted, errPosted):
		if l.aborting.Load() == nil && !ended(landed) {
			l.said = true
			return nil // once more: the peer would take this rank for dead
		}
		return errClosing
	case errors.Is(landed, rdma.ErrCorrupt) || errors.Is(posted, rdma.ErrCorrupt):
		if l.malformed++; l.malformed >= tooMalformed {
			return l.dead(rdma.Failed, errors.Join(landed, posted))
		}
	default:
		l.malformed = 0
	}
	return nil
}

// ended tells whether a connection was closed by the peer, and not broken.
func ended(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// finishConn is the end of c, which was why. It tells whether the link has ended from here.
func (l *link) finishConn(c *conn, why error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = ended(why) && !errors.Is(why, syscall.ECONNRESET)
	c.mu.Lock()
	l.stuck = time.Since(c.stuck) >= l.suspicious()/2 // the peer may have ended it for that
	c.mu.Unlock()
	// The end of a connection comes also from a host to which the way is cut: in doubt
	// only an attempt that is answered counts.
	l.session.Store(nil)
	if l.why = why; fromPeer(why) && l.silence < l.wary() {
		l.silence = 0
	} else {
		l.add(time.Since(l.counted), l.rank.cfg.Unreachable*3/10)
	}
	l.sent, l.received = l.carried(c)
	l.become(broken)
	return l.state == stopping
}

func (l *link) wireBytes() (sent, received uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c := l.current(); c != nil {
		return l.carried(c)
	}
	return l.sent, l.received
}

// carried is what went over all connections up to c; mu is held.
func (l *link) carried(c *conn) (sent, received uint64) {
	sent, received = c.Carried()
	return l.sent + sent, l.received + received
}

// current is the connection, or nil.
func (l *link) current() *conn {
	if s := l.session.Load(); s != nil {
		return s.conn
	}
	return nil
}

// stop ends the link without a word. A connection closes once nobody lands from it, which takes
// rank.mu, and mu is taken under that: so it closes when mu is free.
func (l *link) stop() {
	l.mu.Lock()
	l.become(stopping)
	c := l.current()
	l.mu.Unlock()
	if c != nil {
		c.Reset()
	}
}

// dead is the final state of a peer that is.
func (l *link) dead(kind rdma.Death, why error) *rdma.PeerError {
	return &rdma.PeerError{Rank: l.peer, Kind: kind, Err: why}
}

// finish ends the link: by now nothing is read from slots or written to
// replicas, so that whoever learns of the end can use their memory again.
func (l *link) finish(end error) {
	r := l.rank
	if why := l.condemned.Load(); why != nil && errors.Is(end, errClosing) {
		end = why
	} else {
		defer r.spread(l.peer, end)
	}
	r.mu.Lock()
	l.mu.Lock()
	l.become(over)
	if l.incoming != nil {
		l.incoming.Close()
		l.incoming = nil
	}
	l.mu.Unlock()
	relays, replicas := l.relays, l.replicas
	l.relays, l.words, l.replicas, l.remotes = nil, nil, nil, nil
	for _, p := range replicas {
		if !p.taken && !p.withdrawn {
			p.forget()
		}
	}
	r.mu.Unlock()
	for _, x := range relays {
		x.end()
	}
	if !errors.Is(end, errClosing) {
		r.finish(l.peer, end)
	} else {
		r.bells.RingBells()
	}
}

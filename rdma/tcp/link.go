package tcp

import (
	"context"
	"errors"
	"io"
	"net/netip"
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

	sender atomic.Pointer[sender] // of the connection
	input  atomic.Pointer[input]  // of the connection, unless it is encrypted
	wake   chan struct{}          // has an element, or the sender is awake
	dirty  atomic.Bool            // there may be something to send
	idle   atomic.Bool            // the sender sleeps

	resumed  atomic.Bool // the peer has said, over this connection, where it is with each box
	leaving  atomic.Bool
	probing  atomic.Bool // somebody dials, since nothing is heard of the peer
	aborting atomic.Pointer[rdma.PeerError]
	// The peer counts as dead by what others say (hearsay.go), once the link has ended.
	condemned atomic.Pointer[rdma.PeerError]

	// rank.mu guards the tables. relays, words, replicas and remotes are what the
	// sender goes through; whenever one changes, version does.
	version  atomic.Uint64
	relays   []*relay
	words    []*wordsRelay
	replicas []*replica
	remotes  []*remoteWords
	kept     int  // bytes of what the peer has announced
	over     bool // nothing more can be entered

	// Of whoever lands.
	lastBox, lastWords uint32 // the largest numbers that the peer has announced
	malformed          int    // connections that ended so, one after the other
	said               bool   // that this rank has left, though perhaps unheard

	mu             sync.Mutex
	conn           *conn
	to             []string   // the peer's addresses, the best first
	from           netip.Addr // by which the peer has reached this rank, or the other way round
	incoming       *conn      // has passed the handshake, and waits for the goroutine
	arrived        chan struct{}
	incarnation    uint64        // of the peer's process; 0 before the first connection
	silence        time.Duration // for how long the peer's host had not been heard of,
	counted        time.Time     // then,
	noWay          error         // and the last that said why; nil: nothing did
	why            error         // of the last attempt that failed
	cause          error         // why the connection was broken up from here
	closed         bool          // the last one was closed by the peer
	sent, received uint64        // bytes of earlier connections
	landed, posted atomic.Uint64
}

func newLink(r *rank, peer int) *link {
	l := &link{
		rank: r, peer: peer, up: make(chan struct{}), ended: make(chan struct{}),
		wake: make(chan struct{}, 1), arrived: make(chan struct{}, 1),
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
		c, end := l.connect(first)
		if end != nil && l.said {
			end = errClosing // the peer has heard it, or is gone
		}
		if end == nil {
			if first {
				l.settle(c)
				close(l.up)
			}
			end = l.serve(c)
		}
		if end != nil {
			l.finish(end)
			if first && c == nil {
				l.rank.failed <- l
			}
			return
		}
	}
}

// errPeerLeft: the peer has said so.
var errPeerLeft = errors.New("the peer has left")

// errPosted: the last frame has been sent.
var errPosted = errors.New("this rank has said its last word")

// tooMalformed is how many connections, one after the other, may end because
// what the peer sent cannot be. One is what a fault of the network does.
const tooMalformed = 5

// serve works with one connection until it ends; nil where another one should be
// made.
func (l *link) serve(c *conn) (end error) {
	l.begin(c)
	stop := make(chan struct{})
	s := &sender{link: l, conn: c, stop: stop, out: make([]byte, 0, 2*flushAt)}
	stopped := make(chan error, 1)
	go func() {
		err := s.run()
		if !errors.Is(err, errPosted) && !errors.Is(err, errStopped) {
			c.Close()
		}
		stopped <- err
	}()
	landed := l.land(c)
	close(stop)
	var dead *rdma.PeerError
	left := errors.Is(landed, errPeerLeft)
	if !left {
		c.Close()
	} else {
		_ = c.SetWriteDeadline(time.Unix(1, 0)) // nobody needs it any more
	}
	posted := <-stopped
	if left {
		// The peer waits for this end, so as to know that all has landed.
		c.closeWrite()
		_ = c.SetReadDeadline(time.Now().Add(l.rank.cfg.Unreachable))
		_, _ = io.Copy(io.Discard, c)
		c.Close()
	}
	cause := l.finishConn(c, errors.Join(landed, posted))
	switch {
	case left:
		return rdma.ErrLeft
	case errors.As(landed, &dead):
		return landed
	case errors.Is(posted, errPosted):
		if l.aborting.Load() == nil && !ended(landed) {
			l.said = true
			return nil // once more: the peer would take this rank for dead
		}
		return errClosing
	case cause != nil:
		return cause
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

// begin makes c the link's connection: nothing that was said over an earlier one
// counts, but for what has landed.
func (l *link) begin(c *conn) {
	l.mu.Lock()
	l.conn, l.cause, l.silence, l.counted = c, nil, 0, time.Now()
	l.mu.Unlock()
	l.resumed.Store(false)
	r := l.rank
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, x := range l.relays {
		x.wanted.Store(nil)
		x.announced, x.subscribed, x.closed, x.due = false, false, open, false
		x.answered = 0
	}
	for _, w := range l.words {
		w.announced, w.withdrawn, w.started = false, false, false
		w.askTold = w.heard.Load()
	}
	for _, p := range l.replicas {
		p.subscribed, p.told = false, false
		p.demandTold = p.met.Load()
		p.drop()
	}
	for _, p := range l.remotes {
		p.told, p.answered = false, p.asked.Load()
	}
	l.version.Add(1)
}

// finishConn is the end of c, which was why; cause says why it was broken up from here, if that
// is final.
func (l *link) finishConn(c *conn, why error) (cause error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = ended(why) && !errors.Is(why, syscall.ECONNRESET)
	// The end of a connection comes also from a host to which the way is cut: in doubt
	// only an attempt that is answered counts.
	if l.conn, l.why = nil, why; fromPeer(why) && l.silence < l.suspicious() {
		l.silence = 0
	} else {
		l.add(time.Since(l.counted), l.rank.cfg.Unreachable*3/10)
	}
	l.sent += c.raw.sent.Load()
	l.received += c.raw.received.Load()
	if l.ctx.Err() != nil {
		return errClosing
	}
	return l.cause
}

func (l *link) wireBytes() (sent, received uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	sent, received = l.sent, l.received
	if l.conn != nil {
		sent += l.conn.raw.sent.Load()
		received += l.conn.raw.received.Load()
	}
	return sent, received
}

// current is the connection, or nil.
func (l *link) current() *conn {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.conn
}

// breakUp ends the connection, if there is one; another one will be made.
func (l *link) breakUp(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.why = why
	if l.conn != nil {
		l.conn.Close()
	}
}

// giveUp ends connection c and the link with it.
func (l *link) giveUp(c *conn, end error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn == c {
		l.cause = end
		c.reset()
	}
}

// stop ends the link without a word.
func (l *link) stop() {
	l.quit()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conn != nil {
		l.conn.reset()
	}
}

// dead is the final state of a peer that is.
func (l *link) dead(kind rdma.Death, why error) error {
	return &rdma.PeerError{Rank: l.peer, Kind: kind, Err: why}
}

// finish ends the link: by now nothing is read from slots or written to
// replicas, so that whoever learns of the end can use their memory again.
func (l *link) finish(end error) {
	r := l.rank
	l.quit()
	if why := l.condemned.Load(); why != nil && errors.Is(end, errClosing) {
		end = why
	} else {
		defer r.spread(l.peer, end)
	}
	l.mu.Lock()
	if l.incoming != nil {
		l.incoming.Close()
		l.incoming = nil
	}
	l.mu.Unlock()
	r.mu.Lock()
	relays, replicas := l.relays, l.replicas
	l.relays, l.words, l.replicas, l.remotes, l.over = nil, nil, nil, nil, true
	for _, p := range replicas {
		if !p.taken && !p.withdrawn {
			p.forget()
		}
	}
	r.mu.Unlock()
	for _, p := range replicas {
		p.drop()
	}
	for _, x := range relays {
		x.end()
	}
	if !errors.Is(end, errClosing) {
		r.finish(l.peer, end)
	} else {
		r.bells.RingBells()
	}
}

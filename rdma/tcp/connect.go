package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"malt/rdma"
	"malt/rdma/internal/dial"
	"malt/rdma/internal/handshake"
)

// The end with the higher rank dials. A connection that has ended says nothing
// about the peer by itself. It is made again; but where nobody listens any more
// at an address at which the peer did, its process is gone. Where nothing
// answers at all, its host is away, and after Config.Unreachable its rank dead.
// Where somebody accepts and says nothing, it is stopped or slow, and waited
// for.
const (
	shortest = time.Millisecond
	longest  = 50 * time.Millisecond
	// Who does not dial asks whether the peer is there, and where it is not gives
	// it that long to come by itself: a firewall can refuse in its place.
	grace = 300 * time.Millisecond
)

// connect makes the next connection; first, there was none before, and unless all
// are known to listen there is no telling a peer that is gone from one that has
// yet to come.
func (l *link) connect(first bool) (*conn, error) {
	since := time.Now()
	dialled := l.rank.cfg.Rank > l.peer
	unsure := first && !l.rank.cfg.Listening
	enough, ask := grace, time.Duration(0)
	if first && !dialled {
		enough, ask = l.rank.cfg.Unreachable/2, grace // it may be slow to begin
	}
	silent := time.Duration(0) // for how long dialling got no answer
	pause, began := shortest, since
	for {
		var err error
		var c *conn
		tried := true
		if dialled {
			c, err = l.dial()
		} else if c = l.await(pause); c == nil {
			if tried = !unsure && time.Since(since) >= ask; tried {
				err = l.probe()
			}
			if tried && first && err == nil { // it lets nobody in yet
				ask = time.Since(since) * 3 / 2
			}
		}
		switch {
		case l.ctx.Err() != nil:
			if c != nil {
				c.Close()
			}
			return nil, errClosing
		case c != nil:
			return c, nil
		}
		took := time.Since(began) // with the pause before: without a route it fails at once
		began = began.Add(took)
		if tried {
			end := l.judge(err, first, &silent, took)
			// Once more: it may be on its way here, or just ending.
			if end != nil && (!gone(end) || time.Since(since) >= enough) {
				return nil, end
			}
		}
		if dialled {
			l.sleep(pause)
		}
		pause = min(2*pause, longest)
	}
}

// judge decides what a failed attempt says about the peer; nil: nothing yet.
func (l *link) judge(err error, first bool, silent *time.Duration, took time.Duration) error {
	if err != nil {
		l.mu.Lock()
		l.why = err
		l.mu.Unlock()
	}
	var refused *handshake.Refusal
	limit := l.rank.cfg.Unreachable
	switch {
	case errors.As(err, &refused):
		if first {
			return err
		}
		return l.dead(fmt.Errorf("it does not take this rank back: %w", err))
	case first && !l.rank.cfg.Listening:
		return nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return l.dead(errGone)
	case errors.Is(err, handshake.ErrStranger):
		if first {
			return nil // one of its addresses is somebody else's, too
		}
		return l.dead(errGone)
	case unanswered(err):
		// Not by the clock: this process may have been stopped meanwhile.
		if *silent += min(took, limit/5); *silent >= limit*9/10 {
			return l.dead(unreachable(limit))
		}
	default:
		*silent = 0
	}
	return nil
}

// errGone is why a rank is dead whose process has ended.
var errGone = errors.New("its process has ended: nobody listens at its address any more")

func gone(err error) bool { return errors.Is(err, errGone) }

func unreachable(limit time.Duration) error {
	return fmt.Errorf("its host has not answered for %v: it is off, or the network between is cut", limit)
}

// unanswered tells whether err says that nothing came back from the host.
func unanswered(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() ||
		errors.Is(err, syscall.EHOSTUNREACH) || errors.Is(err, syscall.ENETUNREACH) ||
		errors.Is(err, syscall.ENETDOWN) || errors.Is(err, syscall.EHOSTDOWN)
}

func (l *link) sleep(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.ctx.Done():
	}
}

// open dials the peer's addresses side by side.
func (l *link) open() (*conn, error) {
	addresses := l.addresses()
	c, errs := dial.First(l.ctx, len(addresses), dial.Apart, func(ctx context.Context, i int) (*conn, error) {
		d := net.Dialer{Timeout: l.rank.cfg.Unreachable / 5, KeepAlive: -1}
		c, err := d.DialContext(ctx, "tcp", addresses[i])
		if err != nil {
			return nil, err
		}
		n, err := newConn(c.(*net.TCPConn), l.rank.cfg.Congestion)
		if err == nil {
			n.address = addresses[i]
		}
		return n, err
	})
	if errs == nil {
		return c, nil
	}
	return nil, mostTelling(errs)
}

// mostTelling is the error that says what is known of the peer: a refusal if all
// its addresses refuse, since where one is silent it may be there.
func mostTelling(errs []error) error {
	for _, err := range errs {
		if !errors.Is(err, syscall.ECONNREFUSED) {
			return err
		}
	}
	return errs[0]
}

// dial makes a connection and shakes hands.
func (l *link) dial() (*conn, error) {
	c, err := l.open()
	if err != nil {
		return nil, err
	}
	defer context.AfterFunc(l.ctx, func() { c.Close() })()
	if cfg := l.rank.cfg.TLS; cfg != nil {
		c.Conn = tls.Client(c.raw, handshake.Modern(cfg))
	}
	away := l.guard(c)
	incarnation, err := l.rank.self.Dial(c.Conn, l.peer)
	if away() {
		err = unreachableError{}
	}
	if err == nil && l.permit(incarnation) != handshake.Accepted {
		err = &handshake.Refusal{Verdict: handshake.OtherProcess}
	}
	if err != nil {
		c.Close()
		l.putLast(c.address)
		return nil, fmt.Errorf("%s: %w", c.RemoteAddr(), err)
	}
	return c, nil
}

// unreachableError is a timeout that the guard of a handshake found.
type unreachableError struct{}

func (unreachableError) Error() string   { return "its host does not answer" }
func (unreachableError) Timeout() bool   { return true }
func (unreachableError) Temporary() bool { return true }

// guard closes c when the host at its other end falls silent; a process that is
// stopped does not answer for as long as it likes. The result ends the guard and
// tells whether it has closed c.
func (l *link) guard(c *conn) (away func() bool) {
	stop, silent := make(chan struct{}), make(chan bool, 1)
	limit := l.rank.cfg.Unreachable
	go func() {
		tick := time.NewTicker(limit / 20)
		defer tick.Stop()
		for {
			select {
			case <-stop:
				silent <- false
				return
			case <-tick.C:
			}
			if s, ok := c.state(); ok && s.Silence > limit {
				c.Close()
				silent <- true
				return
			}
		}
	}()
	return func() bool { close(stop); return <-silent }
}

// probe finds out whether somebody listens where the peer did.
func (l *link) probe() error {
	c, err := l.open()
	if err != nil {
		return err
	}
	// A process that is just ending accepts and resets.
	_ = c.SetReadDeadline(time.Now().Add(longest))
	_, err = c.Read(make([]byte, 1))
	c.Close()
	if unanswered(err) {
		return nil // it waits for what we say
	}
	return err
}

// await waits for a connection that the peer made.
func (l *link) await(pause time.Duration) *conn {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-l.arrived:
	case <-t.C:
	case <-l.ctx.Done():
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.incoming
	l.incoming = nil
	return c
}

// permit tells whether a process that has proved the token is the peer: the same
// for ever.
func (l *link) permit(incarnation uint64) handshake.Verdict {
	if l.rank.state(l.peer) != nil {
		return handshake.OtherProcess
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.incarnation == 0 {
		l.incarnation = incarnation
	}
	if l.incarnation != incarnation {
		return handshake.OtherProcess
	}
	return handshake.Accepted
}

// offer hands over a connection that the peer made. That it made one means that
// it has given up the last.
func (l *link) offer(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ctx.Err() != nil {
		c.Close()
		return
	}
	if l.incoming != nil {
		l.incoming.Close()
	}
	l.incoming = c
	if l.conn != nil {
		l.conn.Close()
	}
	select {
	case l.arrived <- struct{}{}:
	default:
	}
}

// await waits until every link has had a connection.
func (r *rank) await(ctx context.Context) error {
	for _, l := range r.links {
		if l == nil {
			continue
		}
		select {
		case <-l.up:
		case l := <-r.failed:
			var refused *handshake.Refusal
			if why := l.lastWhy(); errors.As(why, &refused) {
				return fmt.Errorf("tcp: rank %d to rank %d: %w", r.cfg.Rank, l.peer, why)
			}
			return &rdma.PeerError{Rank: l.peer, Op: "connecting", Err: fmt.Errorf("%s; %s", l.missing(), blocked)}
		case <-ctx.Done():
			return r.missing(ctx.Err())
		}
	}
	return nil
}

// blocked says what may be in the way.
const blocked = "each rank has to run, no firewall may keep them from each other, and these must be addresses of a network that both are on (MALT_INTERFACE chooses)"

func (l *link) lastWhy() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.why == nil {
		return errors.New("nothing was heard of it")
	}
	return l.why
}

// missing says which connections could not be made, and why.
func (r *rank) missing(cause error) error {
	var lines []string
	for _, l := range r.links {
		if l == nil {
			continue
		}
		select {
		case <-l.up:
			continue
		default:
		}
		lines = append(lines, l.missing())
	}
	return fmt.Errorf("tcp: %s; %s: %w", strings.Join(lines, "; "), blocked, cause)
}

// missing says which connection could not be made, and why.
func (l *link) missing() string {
	c := &l.rank.cfg
	if c.Rank < l.peer && !c.Listening {
		return fmt.Sprintf("rank %d did not connect to rank %d at %s", l.peer, c.Rank, l.rank.listening())
	}
	return fmt.Sprintf("rank %d could not connect to rank %d at %s (%v)", c.Rank, l.peer, strings.Join(c.Peers[l.peer], ", "), l.lastWhy())
}

func (r *rank) listening() string {
	var all []string
	for _, l := range r.cfg.Listeners {
		all = append(all, l.Addr().String())
	}
	return strings.Join(all, ", ")
}

package meeting

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"syscall"
	"time"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/internal/dial"
	"malt/rdma/internal/handshake"
)

// guest is the part of any rank but 0.
type guest struct {
	*party
	self *handshake.Self

	absent     []int // as was last heard
	detail, do string

	patience time.Duration // of the next handshake
}

// attend is Meet on them.
func attend(ctx context.Context, p *party) (*Table, []net.Listener, error) {
	g := &guest{party: p, self: newSelf(&p.Config), absent: []int{0}, patience: leastKnock}
	c, err := g.arrive(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer c.Close()
	ls, err := p.listen(c.here())
	if err != nil {
		c.say(&message{Leaving: &leaving{reasonOf(err)}})
		return nil, ls, err
	}
	table, err := g.stay(ctx, c)
	if err != nil {
		return nil, ls, err
	}
	return table.view(p.Rank, ips(p.own), c.there(), zones(p.own)), ls, nil
}

const (
	connectPatience = 3 * time.Second // of one attempt to connect
	shortest        = 20 * time.Millisecond
	longest         = 500 * time.Millisecond

	// Attempts at each place, dial.Apart after each other, as long as none has an answer. What is
	// lost in a flood of strangers the kernel sends again after 1 s, and then more and more seldom.
	knocks = 8

	// Of a handshake: rank 0 may be slow, or stopped, so that each attempt has twice
	// the time of the one before. The first is short, as only its end tells that
	// somebody accepts and says nothing.
	leastKnock, mostKnock = 2 * time.Second, 10 * time.Second
)

// arrive dials until somebody opens who is rank 0. Up to then rank 0 is absent,
// also while nothing is known to stand in the way.
func (g *guest) arrive(ctx context.Context) (*conn, error) {
	g.report(g.absent, fmt.Sprintf("rank 0 at %s has not answered yet", g.Store), "")
	for pause := shortest; ; pause = min(2*pause, longest) {
		c, errs := dial.First(ctx, knocks*len(g.places), dial.Apart, g.knock)
		if errs == nil {
			return c, nil
		}
		errs = errs[:len(g.places)]
		// The end of the time tells less than what was in the way before.
		end, limited := ctx.Deadline()
		late := limited && !time.Now().Before(end)
		if !errors.Is(ctx.Err(), context.Canceled) && !(late && g.detail != "") {
			g.explain(errs)
			if hopeless(errs) {
				return nil, say.Errorf(rdma.ErrConfig, "rank %d was not let in at the store", g.Rank).At("%s", g.detail).Try("%s", g.do)
			}
			g.report(g.absent, g.detail, g.do)
		}
		g.patience = min(2*g.patience, mostKnock)
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return nil, g.waited(g.absent, g.detail, g.do, ctx.Err())
		}
	}
}

// knock connects with the store at one of its places, which have their turns, and shakes hands.
func (g *guest) knock(ctx context.Context, i int) (*conn, error) {
	d := net.Dialer{Timeout: connectPatience, KeepAlive: -1}
	raw, err := d.DialContext(ctx, "tcp", g.places[i%len(g.places)].String())
	if err != nil {
		return nil, err
	}
	c, err := newConn(raw.(*net.TCPConn))
	if err != nil {
		return nil, err
	}
	defer c.interruptible(ctx)()
	_ = c.SetDeadline(time.Now().Add(g.patience))
	if c.Conn, err = g.self.Secure(c.raw, g.Encrypt); err != nil {
		c.Close()
		return nil, err
	}
	if _, err := g.self.Dial(c.Conn, 0); err != nil {
		c.Close()
		return nil, &knockError{c.raw.RemoteAddr(), err}
	}
	return c, c.SetDeadline(time.Time{})
}

// knockError is what went wrong after somebody had accepted.
type knockError struct {
	at  net.Addr
	err error
}

func (e *knockError) Error() string { return fmt.Sprintf("%v: %v", e.at, e.err) }
func (e *knockError) Unwrap() error { return e.err }

// stay says who this rank is, and hears the rest.
func (g *guest) stay(ctx context.Context, c *conn) (*tableMessage, error) {
	if err := c.send(&message{Here: &g.card}); err != nil {
		return nil, g.abandoned(err)
	}
	// A context that ends, and a host that is silent, end the wait for the next
	// message.
	defer context.AfterFunc(ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })()
	var away atomic.Bool
	defer g.watch(c, &away)()
	for {
		m, err := receive(c, maxFromRank+maxPerRank*g.Size)
		switch {
		case err != nil && ctx.Err() != nil:
			err := g.waited(g.absent, g.detail, g.do, ctx.Err())
			c.say(&message{Leaving: &leaving{reasonOf(err)}})
			return nil, err
		case away.Load():
			return nil, &rdma.PeerError{Rank: 0, Kind: rdma.Unreachable, Op: "malt.init", Err: dial.Silent(g.Unreachable, nil, c.raw.RemoteAddr().String())}
		case err != nil:
			return nil, g.abandoned(err)
		case m.Waiting != nil:
			g.absent, g.detail, g.do = m.Waiting.ranks(), m.Waiting.Detail, m.Waiting.Do
			g.report(g.absent, g.detail, g.do)
		case m.Failed != nil:
			return nil, m.Failed.error()
		case m.Table != nil && len(m.Table.Ranks) == g.Size:
			g.report(nil, "", "")
			return m.Table, c.send(&message{Got: &struct{}{}})
		default:
			return nil, g.abandoned(fmt.Errorf("%w: not for a rank", errMessage))
		}
	}
}

// watch closes c when the host at its other end falls silent.
func (g *guest) watch(c *conn, away *atomic.Bool) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for {
			select {
			case <-done:
				return
			case <-tick.C:
				if c.silent(g.Unreachable) {
					away.Store(true)
					c.Close()
					return
				}
			}
		}
	}()
	return func() { close(done) }
}

// abandoned is the error when the connection with rank 0 ends.
func (g *guest) abandoned(err error) error {
	return &rdma.PeerError{Rank: 0, Kind: rdma.Ended, Op: "malt.init", Err: fmt.Errorf("the connection with it at %s has ended, probably because the process ended: %w", g.Store, err)}
}

// hopeless tells whether trying again would not help.
func hopeless(errs []error) bool {
	for _, err := range errs {
		var refused *handshake.Refusal
		if !errors.As(err, &refused) && !errors.Is(err, handshake.ErrStranger) {
			return false
		}
	}
	return true
}

// explain notes what is in the way at each place, and what to do: about the first of them.
func (g *guest) explain(errs []error) {
	g.detail, g.do = "", ""
	for i, err := range errs {
		what, do := explain(g.places[i], err)
		g.detail, g.do = joined(g.detail, what), cmp.Or(g.do, do)
	}
}

func explain(p place, err error) (what, do string) {
	var (
		op      *net.OpError
		knock   *knockError
		dns     *net.DNSError
		refused *handshake.Refusal
		timeout net.Error
		at      = p.host
	)
	inside := false // it is this host that was dialled
	if errors.As(err, &op) && op.Addr != nil {
		ip := addrOf(op.Addr)
		inside = ip.IsLoopback()
		at = p.resolved([]netip.Addr{ip})
	}
	const elsewhere = "If rank 0 is on another host, give its address (" + theStore + ")."
	switch {
	case errors.As(err, &dns):
		return fmt.Sprintf("%s cannot be resolved: %s", p.host, dns.Err), "If this lasts, give rank 0's address instead (" + theStore + ")."
	case errors.As(err, &refused) && refused.Verdict == handshake.OtherEncryption:
		return fmt.Sprintf("rank 0 at %s: %v", p, refused), refused.Advice()
	case errors.As(err, &refused):
		return fmt.Sprintf("%s belongs to another job, or this rank has other settings: %v", p, err), refused.Advice()
	case errors.Is(err, handshake.ErrStranger):
		return fmt.Sprintf("%s: %v; another program listens there", p, err), "Choose another port (" + theStore + ")."
	case errors.As(err, &knock) && (errors.As(err, &timeout) && timeout.Timeout() || errors.Is(err, net.ErrClosed)): // closed by the end of ctx
		return fmt.Sprintf("%s accepts and sends nothing: rank 0 is stopped, or another program listens there", p), "Look at rank 0, or choose another port (" + theStore + ")."
	case errors.As(err, &knock):
		return fmt.Sprintf("%s ended the connection (%v): rank 0 has just ended", p, knock.err), "Read what rank 0 printed."
	case errors.Is(err, syscall.ECONNREFUSED) && inside && !p.loopback():
		return fmt.Sprintf("%s leads to this host itself, where rank 0 is not (yet)", at), "Correct /etc/hosts here. " + elsewhere
	case errors.Is(err, syscall.ECONNREFUSED) && inside:
		return fmt.Sprintf("nothing listens at %s yet", p), "Start rank 0. " + elsewhere
	case errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Sprintf("nothing listens at port %d of %s: rank 0 has not started there, or its meeting is over", p.port, at),
			"Start rank 0, or open the port in the firewall."
	case errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return fmt.Sprintf("%s does not answer at port %d (%v)", at, p.port, err),
			"The host of rank 0 must be up and on this network, and no firewall may block that port."
	}
	return fmt.Sprintf("%s: %v", p, err), ""
}

// Package tcp is a Wire over TCP and TLS.
//
//	w := tcp.New(tcp.Config{Job: id, Token: secret, Listeners: ls, Peers: addresses})
//
// Connections are encrypted where Config.Encrypt says so. A rank may listen at several
// addresses, of which a peer can reach some. Which one, the first connection with a peer
// decides, alike at both ends: from then on the two meet there only, so that a refusal
// says that the process is gone, and what nobody uses can be closed.
//
// docs/developers/wire.md has the handshake.
package tcp

import (
	"context"
	"crypto/sha256"
	"errors"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/internal/dial"
	"malt/rdma/internal/handshake"
	"malt/rdma/internal/mem"
	"malt/rdma/wire"
)

// Config is what a rank must know before it can be connected with others.
type Config struct {
	// Job names the job in messages; all ranks must have the same.
	Job string
	// Token is the job's secret. It never travels: each end of a connection proves
	// to the other that it has it.
	Token []byte
	// Listeners accept for this rank. The Wire takes them over and closes them.
	Listeners []net.Listener
	// Peers has the addresses of each rank, host:port, in the order in which they
	// are to be tried. A rank is dialled by those above it, and by the others to
	// find out whether it is there.
	Peers [][]string
	// Congestion is the name of a congestion control algorithm; "" is the system's.
	Congestion string
	// Encrypt says which connections are encrypted, with TLS. The proof of the token
	// covers the TLS session, so its certificates prove nothing.
	Encrypt handshake.Encryption
}

func (c *Config) check(size int) error {
	switch {
	case len(c.Token) == 0:
		return say.Errorf(rdma.ErrConfig, "this rank has no token").Try("All ranks of a job need the same secret (MALT_TOKEN); malt run makes one.")
	case len(c.Peers) != size:
		return say.Errorf(rdma.ErrConfig, "addresses of %d ranks, expected %d", len(c.Peers), size)
	case c.Congestion == "":
		return nil
	}
	if err := mem.TryCongestion(c.Congestion); err != nil {
		return noCongestion(c.Congestion, err, os.Geteuid() == 0)
	}
	return nil
}

func noCongestion(name string, err error, root bool) error {
	which, why := "available", "there is none, or its module is not loaded, such as by modprobe tcp_"+name
	if !root {
		which = "allowed"
	}
	if errors.Is(err, syscall.EPERM) {
		which, why = "allowed", "it is not for ordinary users (net.ipv4.tcp_allowed_congestion_control)"
	}
	names, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_" + which + "_congestion_control")
	return say.Errorf(rdma.ErrConfig, "congestion=%.40q (MALT_CONGESTION): %v", name, err).At("%s", why).
		Try("Here it can be %s.", strings.Join(strings.Fields(string(names)), ", "))
}

// network is a Wire over TCP and TLS.
type network struct {
	cfg  Config
	host wire.Host
	self *handshake.Self
	door *handshake.Door[*conn]

	mu   sync.Mutex
	to   [][]string   // the addresses of each rank, the best first; its own, where it listens
	used []netip.Addr // by which a peer has reached this rank, or the other way round
}

// New takes over listeners, which Close closes.
func New(c Config) wire.Wire { return &network{cfg: c, to: slices.Clone(c.Peers)} }

func (n *network) Name() string { return "tcp" }

// protocol is that of docs/developers/wire.md.
var protocol = handshake.Protocol{Magic: 0x3150_4354_544c_414d, Version: 2, Name: "MALT rdma/tcp"} // "MALTTCP1"

func (n *network) Listen(h wire.Host) error {
	if err := n.cfg.check(h.Size); err != nil {
		return err
	}
	if h.Size > 1 && len(n.cfg.Listeners) == 0 {
		return say.Errorf(rdma.ErrConfig, "rank %d has no listener", h.Rank)
	}
	n.host = h
	n.self = handshake.New(protocol, n.cfg.Token, handshake.Hello{
		Job: sha256.Sum256([]byte(n.cfg.Job)), From: uint32(h.Rank), Size: uint32(h.Size), Generation: h.Generation,
	})
	n.to[h.Rank] = nil
	for _, l := range n.cfg.Listeners {
		n.to[h.Rank] = append(n.to[h.Rank], l.Addr().String())
	}
	n.door = handshake.OpenDoor(n.cfg.Listeners, h.Size, n.enter, n.greet)
	return nil
}

// enter takes over a connection that somebody made.
func (n *network) enter(c *net.TCPConn) (*conn, error) { return newConn(n, c) }

// greet is a stranger's handshake. Whatever fails in it has no effect.
func (n *network) greet(c *conn, visit handshake.Visit) {
	secure, h, err := n.self.Greet(c.metered, n.cfg.Encrypt, visit, n.permit)
	if err != nil {
		c.Close()
		return
	}
	c.over = secure
	n.host.Offer(int(h.From), c)
}

// permit judges a process that has proved the token.
func (n *network) permit(h *handshake.Hello) handshake.Verdict {
	switch {
	case h.Job != sha256.Sum256([]byte(n.cfg.Job)):
		return handshake.OtherJob
	case h.Size != uint32(n.host.Size):
		return handshake.OtherSize
	case h.To != uint32(n.host.Rank) || h.From >= h.Size:
		return handshake.NoSuchRank
	case h.Generation != n.host.Generation:
		return handshake.OtherGeneration
	}
	return n.host.Permit(int(h.From), h.Incarnation)
}

func (n *network) Close() {
	if n.door != nil {
		n.door.Close()
		return
	}
	for _, l := range n.cfg.Listeners {
		l.Close()
	}
}

func (n *network) Addresses(rank int) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if rank >= len(n.to) {
		return nil
	}
	return n.to[rank]
}

// putLast has address, where somebody else answered, tried after the others.
func (n *network) putLast(peer int, address string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	to := n.to[peer]
	if i := slices.Index(to, address); i >= 0 {
		n.to[peer] = append(slices.Concat(to[:i], to[i+1:]), address)
	}
}

// Settle: a peer that comes from no address at which it listens, from behind a
// translation of addresses, may be at any.
func (n *network) Settle(peer int, w wire.Conn) {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := w.(*conn)
	n.used = append(n.used, hostOf(c.LocalAddr()))
	there := hostOf(c.RemoteAddr())
	at := slices.DeleteFunc(slices.Clone(n.to[peer]), func(a string) bool {
		if c.address != "" {
			return a != c.address
		}
		ip, err := netip.ParseAddrPort(a)
		return err != nil || ip.Addr().Unmap().WithZone("") != there
	})
	if len(at) > 0 {
		n.to[peer] = at
	}
}

// Settled closes the listeners at which no peer looks for this rank.
func (n *network) Settled() {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, from := range n.used {
		if !slices.ContainsFunc(n.cfg.Listeners, func(d net.Listener) bool { return hostOf(d.Addr()) == from }) {
			return // the peer may look for it at any
		}
	}
	n.door.Keep(func(d net.Listener) bool { return slices.Contains(n.used, hostOf(d.Addr())) })
}

// hostOf is an address without port and zone.
func hostOf(a net.Addr) netip.Addr {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return t.AddrPort().Addr().Unmap().WithZone("")
}

// Dial tries the peer's addresses side by side.
func (n *network) Dial(ctx context.Context, peer int, given, apart time.Duration) (wire.Conn, error) {
	addresses := n.Addresses(peer)
	c, errs := dial.First(ctx, len(addresses), dial.Apart, func(ctx context.Context, i int) (*conn, error) {
		c, err := n.dialAt(ctx, addresses[i], given, apart)
		if err == nil {
			c.peer, c.address = peer, addresses[i]
		}
		return c, err
	})
	if errs == nil {
		return c, nil
	}
	return nil, mostTelling(errs)
}

// dialAt dials an address, perhaps again and again: of what a network has lost meanwhile
// the kernel sends the first thing again after a second only, by when the host may count
// as unreachable.
func (n *network) dialAt(ctx context.Context, address string, given, apart time.Duration) (*conn, error) {
	ctx, over := context.WithTimeout(ctx, given)
	defer over()
	ctx, answered := context.WithCancelCause(ctx)
	defer answered(nil)
	c, errs := dial.First(ctx, int((given+apart-1)/apart), apart, func(ctx context.Context, _ int) (*conn, error) {
		d := net.Dialer{KeepAlive: -1}
		c, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			if err = dial.Refusal(err, given); !dial.Unanswered(err) {
				answered(err) // by the first, if it is not the end of all
			}
			return nil, err
		}
		made, err := newConn(n, c.(*net.TCPConn))
		if err == nil {
			_ = made.SetLinger(0) // nothing of an attempt stays with the kernel
		}
		return made, err
	})
	switch cause := context.Cause(ctx); {
	case errs == nil:
		return c, nil
	case cause != nil && !errors.Is(cause, ctx.Err()):
		return nil, cause
	}
	return nil, errs[0]
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

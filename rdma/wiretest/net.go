// Package wiretest is a network in memory whose connections get lost, for tests of what
// runs over a wire.Wire.
//
//	net := wiretest.New(n, seed, true)
//	t, err := remote.Open(ctx, remote.Config{Rank: r, Size: n}, net.Wire(r))
//
// A connection is lost after some bytes, wherever in a frame that is. One of its ends
// sees that at once, and the other one not before the two have a new connection, or one
// of them has closed its Wire.
package wiretest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"malt/rdma/internal/handshake"
	"malt/rdma/wire"
)

// Net connects ranks.
type Net struct {
	inline bool
	keep   atomic.Bool // no connection is lost any more

	mu     sync.Mutex
	random *rand.Rand
	hosts  []*host
	late   []*conn // ends that have yet to see that their connection is lost
	lost   int
	after  int
}

// New is a network of n ranks. inline says whether connections have TryRead, TryWrite and
// Await.
func New(n int, seed uint64, inline bool) *Net {
	net := &Net{inline: inline, random: rand.New(rand.NewPCG(seed, 0))}
	for rank := range n {
		net.hosts = append(net.hosts, &host{net: net, rank: rank})
	}
	return net
}

// Wire is that of a rank.
func (n *Net) Wire(rank int) wire.Wire { return n.hosts[rank] }

// Lost is how many connections were lost, and of how many of those an end saw it after the
// next one had begun.
func (n *Net) Lost() (all, after int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.lost, n.after
}

// lifetime is how many bytes an end can write before the connection is lost.
func (n *Net) lifetime() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	most := 1 << (8 + n.random.IntN(14))
	return most/2 + n.random.IntN(most)
}

// lose has one end of a connection see that it is lost.
func (n *Net) lose(c *conn) {
	n.mu.Lock()
	first, other := c, c.other
	if n.random.IntN(2) == 0 {
		first, other = other, first
	}
	keep := n.keep.Load()
	if n.lost++; !keep {
		n.late = append(n.late, other)
	}
	n.mu.Unlock()
	first.fail(syscall.ECONNRESET)
	if keep {
		other.fail(syscall.ECONNRESET)
	}
}

// Keep has no connection lost from now on, and all ends see which are.
func (n *Net) Keep() {
	n.keep.Store(true)
	n.catchUp(false, func(*conn) bool { return true })
}

// catchUp has ends see that their connections are lost; begun: another one has begun.
func (n *Net) catchUp(begun bool, which func(c *conn) bool) {
	n.mu.Lock()
	late := n.late
	n.late = slices.DeleteFunc(slices.Clone(late), which)
	if begun {
		n.after += len(late) - len(n.late)
	}
	n.mu.Unlock()
	for _, c := range late {
		if which(c) {
			c.fail(syscall.ECONNRESET)
		}
	}
}

// host is the Wire of a rank.
type host struct {
	net  *Net
	rank int

	mu   sync.RWMutex // is held while a connection is offered
	open bool
	wire.Host
}

func (h *host) Name() string { return "memory" }

func (h *host) Listen(self wire.Host) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.open, h.Host = true, self
	return nil
}

func (h *host) Close() {
	h.mu.Lock()
	h.open = false
	h.mu.Unlock()
	h.net.catchUp(false, func(c *conn) bool { return c.at == h || c.other.at == h })
}

func (h *host) Addresses(rank int) []string { return []string{fmt.Sprintf("rank %d", rank)} }
func (h *host) Settle(int, wire.Conn)       {}
func (h *host) Settled()                    {}

func (h *host) Dial(_ context.Context, peer int, _, _ time.Duration) (wire.Conn, error) {
	to := h.net.hosts[peer]
	to.mu.RLock()
	defer to.mu.RUnlock()
	if !to.open {
		return nil, syscall.ECONNREFUSED
	}
	p := &pair{news: make(chan struct{})}
	here, there := &conn{pair: p, at: h}, &conn{pair: p, at: to}
	here.other, there.other = there, here
	return here, nil
}

// Prove has nothing to prove: processes are named by their ranks.
func (c *conn) Prove(permit func(incarnation uint64) handshake.Verdict) error {
	from, to := c.at, c.other.at
	to.mu.RLock()
	defer to.mu.RUnlock()
	if !to.open {
		return syscall.ECONNRESET
	}
	v := to.Permit(from.rank, uint64(from.rank)+1)
	if v == handshake.Accepted {
		v = permit(uint64(to.rank) + 1)
	}
	if v == handshake.Accepted {
		c.left, c.other.left = from.net.lifetime(), from.net.lifetime()
		to.Offer(from.rank, c.other)
	}
	from.net.catchUp(v == handshake.Accepted, func(c *conn) bool { return c.at == from && c.other.at == to || c.at == to && c.other.at == from })
	if v != handshake.Accepted {
		return &handshake.Refusal{Verdict: v}
	}
	return nil
}

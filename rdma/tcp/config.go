package tcp

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/internal/handshake"
	"malt/rdma/internal/mem"
)

// Config is what a rank must know before it can open connections. How it comes
// to know it is not this package's business.
type Config struct {
	Rank, Size int

	// Job names the job in messages; all ranks must have the same.
	Job string
	// Token is the job's secret. It never travels: each end of a connection proves
	// to the other that it has it.
	Token []byte
	// Generation of the membership: a rank of another one is refused.
	Generation uint32

	// Near are ranks that another transport reaches: no connection is made to
	// them. This one may be among them.
	Near []int
	// Bell is where this rank waits for near ranks as well; nil: it has its own.
	Bell Doorbell

	// Listeners accept for this rank. The transport takes them over and closes
	// them, also when Open fails.
	Listeners []net.Listener
	// Peers has the addresses of each rank, host:port, in the order in which they
	// are to be tried. A rank is dialled by those above it, and by the others to
	// find out whether it is there.
	Peers [][]string
	// Listening says that all ranks listen by now, so that one at whose addresses
	// nobody does, or from which nothing comes back for Unreachable, is dead, and
	// fails Open; else it is waited for.
	Listening bool

	// Unreachable is how soon all know that a rank is dead whose host gives no sign
	// of life; 0 is 5 s, and less than 2 s is refused: the kernel asks an idle
	// host once a second, so its last sign may be a second older than what has
	// happened. A process that is stopped gives signs: its kernel does.
	Unreachable time.Duration
	// Congestion is the name of a congestion control algorithm; "" is the system's.
	Congestion string
	// Encrypt says which connections are encrypted, with TLS. The proof of the token
	// covers the TLS session, so its certificates prove nothing.
	Encrypt handshake.Encryption
}

// Doorbell is what one goroutine of a rank waits at, and a way to the others.
type Doorbell interface {
	BellID() uint64 // above 0 and below 1 << 32
	Wake()
	// WaitFor runs step until it returns true or an error, once now and again
	// after every ring.
	WaitFor(ctx context.Context, step func() (bool, error)) error

	RingBell(id uint64) // one of near ranks
	RingBells()         // all of this rank and its subs
}

const defaultUnreachable = 5 * time.Second

// silence is for how long a host may give no sign, so that it is told in time.
func (c *Config) silence() time.Duration { return c.Unreachable - c.Unreachable/20 }

func (c *Config) check() error {
	switch {
	case c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size:
		return say.Errorf(rdma.ErrConfig, "rank %d of %d: ranks are numbered from 0", c.Rank, c.Size)
	case len(c.Token) == 0:
		return say.Errorf(rdma.ErrConfig, "this rank has no token").Try("All ranks of a job need the same secret (MALT_TOKEN), which malt run makes.")
	case len(c.Peers) != c.Size:
		return say.Errorf(rdma.ErrConfig, "addresses of %d ranks: those of %d are expected", len(c.Peers), c.Size)
	case c.Unreachable == 0:
		c.Unreachable = defaultUnreachable
	case c.Unreachable < 2*time.Second:
		return say.Errorf(rdma.ErrConfig, "a host counts as unreachable after %v: 2 s or more are expected", c.Unreachable)
	}
	for r, addresses := range c.Peers {
		if c.reaches(r) && len(addresses) == 0 {
			return say.Errorf(rdma.ErrConfig, "rank %d has no address", r)
		}
	}
	if c.Size > 1 && len(c.Listeners) == 0 {
		return say.Errorf(rdma.ErrConfig, "rank %d has no listener", c.Rank)
	}
	return c.checkCongestion()
}

func (c *Config) checkCongestion() error {
	if c.Congestion == "" {
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

// reaches tells whether there is a connection to rank.
func (c *Config) reaches(rank int) bool {
	return rank >= 0 && rank < c.Size && rank != c.Rank && !slices.Contains(c.Near, rank)
}

func (c *Config) checkRanks(what string, ranks []int) error {
	for i, r := range ranks {
		if r < 0 || r >= c.Size || slices.Contains(ranks[:i], r) {
			return fmt.Errorf("%s %v: each must be a rank below %d, named once", what, ranks, c.Size)
		}
		if r == c.Rank {
			return fmt.Errorf("%s %v: rank %d is this rank itself", what, ranks, r)
		}
		if !c.reaches(r) {
			return fmt.Errorf("%s %v: rank %d is on this machine", what, ranks, r)
		}
	}
	return nil
}

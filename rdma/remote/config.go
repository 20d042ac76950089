package remote

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/fabric"
	"malt/rdma/internal/bell"
)

// Config is what a rank must know before it can open connections. How it comes
// to know it is not this package's business.
type Config struct {
	Rank, Size int
	// Witnesses have the numbers from Size on, and connections as ranks have, for votes alone.
	Witnesses int

	// Generation of the membership: a rank of another one is refused.
	Generation uint32

	// Near are ranks that another transport reaches: no connection is made to
	// them. This one may be among them.
	Near []int
	// Bell is where this rank waits for near ranks as well; nil: it has its own.
	Bell bell.Doorbell

	// Listening says that all ranks listen by now, so that one at whose addresses
	// nobody does, or from which nothing comes back for Unreachable, is dead, and
	// fails Open; else it is waited for.
	Listening bool

	// Unreachable is how soon all know that a rank is dead whose host gives no sign
	// of life; 0 is 5 s, and less than 2 s is refused: the kernel asks an idle
	// host once a second, so its last sign may be a second older than what has
	// happened. A process that is stopped gives signs: its kernel does.
	//
	// With Survives, 0 is 0.5 s, and 0.2 s is enough: from Survive on no connection is
	// idle. Before that, 2 s hold all the same.
	Unreachable time.Duration

	// Fabric, if not nil, brings payload past the connections, of updates of PlaceFrom bytes or more;
	// 0: as many as are worth it. NoFabric is why it is nil. FabricNeeded says that Open fails where it cannot
	// be used, unless for want of memory that may be locked.
	Fabric       fabric.Carrier
	NoFabric     error
	FabricNeeded bool
	PlaceFrom    int

	// Survives says that Survive will be called.
	Survives bool

	lost  time.Duration // for so long a payload that was written may not have arrived; 0: 10 s
	late  int           // so often the peer may have answered while a write does not end; 0: for 5 s
	doubt time.Duration // from Survive on, a peer that has not answered for so long is doubted
}

// WhereSurvived is what Config.Unreachable is by default, with Survives.
const WhereSurvived = 500 * time.Millisecond

const (
	defaultUnreachable = 5 * time.Second
	leastUnreachable   = 2 * time.Second
	leastWhereSurvived = 200 * time.Millisecond
)

// silence is for how long a host may give no sign, so that it is told in time.
func (c *Config) silence() time.Duration { return c.Unreachable - c.Unreachable/20 }

// answers is late, as it holds.
func (c *Config) answers() int { return cmp.Or(c.late, int(max(2, 5*time.Second/c.look()))) }

// look is the time between two looks at a link.
func (c *Config) look() time.Duration {
	if c.Survives {
		return c.doubt / 16
	}
	return c.Unreachable / 20
}

func (c *Config) check() error {
	usual, least := defaultUnreachable, leastUnreachable
	if c.Survives {
		usual, least = WhereSurvived, leastWhereSurvived
	}
	c.PlaceFrom = cmp.Or(c.PlaceFrom, copied+1)
	switch {
	case c.Size < 1 || c.Rank < 0 || c.Rank >= c.peers():
		return say.Errorf(rdma.ErrConfig, "rank %d of %d: ranks are numbered from 0", c.Rank, c.Size)
	case c.Unreachable == 0:
		c.Unreachable = usual
	case c.Unreachable < least:
		return say.Errorf(rdma.ErrConfig, "a host counts as unreachable after %v: expected %g s or more", c.Unreachable, least.Seconds())
	}
	if c.Survives {
		c.doubt = c.Unreachable * 4 / 5
		c.Unreachable = max(c.Unreachable, leastUnreachable)
	}
	return nil
}

// peers is how many can have connections.
func (c *Config) peers() int { return c.Size + c.Witnesses }

// reaches tells whether there is a connection to rank.
func (c *Config) reaches(rank int) bool {
	return rank >= 0 && rank < c.peers() && rank != c.Rank && !slices.Contains(c.Near, rank)
}

func (c *Config) checkRanks(what string, ranks []int) error {
	for _, r := range ranks {
		if slices.Contains(c.Near, r) && r != c.Rank {
			return fmt.Errorf("%s %v: rank %d is on this machine", what, ranks, r)
		}
	}
	return rdma.CheckPeers(what, ranks, c.Rank, c.Size)
}

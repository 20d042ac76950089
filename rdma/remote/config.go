package remote

import (
	"fmt"
	"slices"
	"time"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/internal/bell"
)

// Config is what a rank must know before it can open connections. How it comes
// to know it is not this package's business.
type Config struct {
	Rank, Size int

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
	Unreachable time.Duration
}

const defaultUnreachable = 5 * time.Second

// silence is for how long a host may give no sign, so that it is told in time.
func (c *Config) silence() time.Duration { return c.Unreachable - c.Unreachable/20 }

func (c *Config) check() error {
	switch {
	case c.Size < 1 || c.Rank < 0 || c.Rank >= c.Size:
		return say.Errorf(rdma.ErrConfig, "rank %d of %d: ranks are numbered from 0", c.Rank, c.Size)
	case c.Unreachable == 0:
		c.Unreachable = defaultUnreachable
	case c.Unreachable < 2*time.Second:
		return say.Errorf(rdma.ErrConfig, "a host counts as unreachable after %v: expected 2 s or more", c.Unreachable)
	}
	return nil
}

// reaches tells whether there is a connection to rank.
func (c *Config) reaches(rank int) bool {
	return rank >= 0 && rank < c.Size && rank != c.Rank && !slices.Contains(c.Near, rank)
}

func (c *Config) checkRanks(what string, ranks []int) error {
	for _, r := range ranks {
		if slices.Contains(c.Near, r) && r != c.Rank {
			return fmt.Errorf("%s %v: rank %d is on this machine", what, ranks, r)
		}
	}
	return rdma.CheckPeers(what, ranks, c.Rank, c.Size)
}

package rendezvous

import (
	"slices"
	"strings"

	"malt/internal/say"
	"malt/rdma"
)

// Config says who joins what.
type Config struct {
	Rank, Size int
	Store      string // "local:" and the job's id, 1 to 64 hexadecimal digits
	Token      string // secret of the job; the same on every rank, may be empty

	// Members are the ranks of the job that are on this machine, ascending; nil:
	// all. The others are strangers to the Host.
	Members []int
	// Elsewhere is what is known of a rank that is no member, as State says it; nil: nothing.
	Elsewhere func(rank int) error
	// Hosts is the host of each rank, from 0, in a job on several that can go on when ranks
	// die. Then the hosts decide who takes part (Host.Ballots). After those of the ranks come
	// those of witnesses, which only vote. nil: this machine has all ranks, or the first death
	// ends the job.
	Hosts []int
	// Try is how often the ranks have tried to meet again, with new processes in the place of
	// ranks that died: each time they are another job to those that have not (again.go).
	Try uint64
	// Said tells whether what Elsewhere says of a rank is its own last word. With Hosts it is
	// needed.
	Said func(rank int) bool
}

const scheme = "local:"

// job checks c and returns the job's id.
func (c *Config) job() (string, error) {
	if c.Size < 1 || c.Size > MaxSize {
		return "", say.Errorf(rdma.ErrConfig, "size %d: expected 1 to %d ranks", c.Size, MaxSize)
	}
	if c.Rank < 0 || c.Rank >= c.Size {
		return "", say.Errorf(rdma.ErrConfig, "rank %d of %d: expected 0 to %d", c.Rank, c.Size, c.Size-1)
	}
	if len(c.Token) > 256 {
		return "", say.Errorf(rdma.ErrConfig, "a token of %d bytes; the limit is 256", len(c.Token))
	}
	if m := c.Members; m != nil && (!slices.Contains(m, c.Rank) || !slices.IsSorted(m) ||
		len(slices.Compact(slices.Clone(m))) != len(m) || m[0] < 0 || m[len(m)-1] >= c.Size) {
		return "", say.Errorf(rdma.ErrConfig, "members %v: expected ranks below %d, in ascending order, with rank %d", m, c.Size, c.Rank)
	}
	if len(c.members()) == max(c.Size, len(c.Hosts)) {
		c.Hosts = nil // who takes part is decided here
	}
	if c.Hosts != nil {
		if err := c.checkHosts(); err != nil {
			return "", err
		}
	}
	id, ok := strings.CutPrefix(c.Store, scheme)
	if !ok || len(id) < 1 || len(id) > 64 || strings.Trim(id, "0123456789abcdefABCDEF") != "" {
		return "", say.Errorf(rdma.ErrConfig, "store %.60q: expected local: and 1 to 64 hexadecimal digits", c.Store).Try("Write, for example, local:5eed.")
	}
	return tried(id, c.Try), nil
}

// checkHosts fails unless the members are the ranks of one of the hosts.
func (c *Config) checkHosts() error {
	var here []int
	for rank, host := range c.Hosts {
		if host < 0 || host >= len(c.Hosts) {
			return say.Errorf(rdma.ErrConfig, "rank %d on host %d: expected 0 to %d", rank, host, len(c.Hosts)-1)
		}
		if c.Rank < len(c.Hosts) && host == c.Hosts[c.Rank] {
			here = append(here, rank)
		}
	}
	if c.Said == nil || c.Elsewhere == nil {
		return say.Errorf(rdma.ErrConfig, "hosts %v, and nobody to ask about ranks elsewhere", c.Hosts)
	}
	if len(c.Hosts) < c.Size || !slices.Equal(here, c.members()) {
		return say.Errorf(rdma.ErrConfig, "hosts %v for %d ranks: expected the host of each, and members %v on that of rank %d", c.Hosts, c.Size, c.members(), c.Rank)
	}
	return nil
}

// members are those that meet on this machine; the first keeps the control page.
func (c *Config) members() []int {
	if c.Members != nil {
		return c.Members
	}
	all := make([]int, c.Size)
	for rank := range all {
		all[rank] = rank
	}
	return all
}

package meeting

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/internal/handshake"
)

// Config is what a rank knows before it has met the others.
type Config struct {
	Rank, Size int

	// Store is where rank 0 listens: host:port, of a name or an address; several,
	// with commas between, are the same place by other ways, tried in turn.
	Store string
	// StoreFD are the descriptors of TCP sockets that listen at the store, handed
	// over to rank 0 by whoever started it; none: rank 0 makes the sockets.
	StoreFD []int
	// Token is the job's secret. It does not travel.
	Token string
	// Encrypt says which connections of the meeting are encrypted.
	Encrypt handshake.Encryption

	// Interface says at which of this host's addresses the rank listens: names of
	// interfaces, patterns of names, addresses and networks, with commas between,
	// such as "ib0,eth*,10.1.0.0/16"; with ^ before it, at which not. "": at those
	// that look as if other hosts could reach them.
	Interface string
	// Together says which ranks were started along with this one, by one launcher:
	// "4-7". Ranks whose launchers divided them in different ways do not meet. "": it
	// is not known.
	Together string
	// Version of MALT, which must be the same on all ranks.
	Version string
	// Host names the host: ranks with the same name share memory. "": by what the
	// kernel says.
	Host string
	// Alone says that this rank can share memory with none, of whatever host.
	Alone bool

	// Unreachable is for how long another host may give no sign of life; less than
	// 5 s counts as 5 s.
	Unreachable time.Duration

	// Report, if not nil, is told now and then what the meeting waits for. It is
	// called by one goroutine at a time, and must not block.
	Report func(Progress)
}

// Progress is what a meeting waits for.
type Progress struct {
	Absent []int  // ranks that have not come, as far as this rank knows
	Detail string // what stands in the way, as far as this rank knows, or ""
	Do     string // about that, or ""
}

// MaxSize is how many ranks can meet.
const MaxSize = 4096

// place is a place at which rank 0 may be found.
type place struct {
	host string
	port uint16
}

func (p place) String() string { return net.JoinHostPort(p.host, strconv.Itoa(int(p.port))) }

// loopback tells whether the place is meant to be reached from its own host only.
// A name that merely resolves to a loopback address there is not: /etc/hosts says
// so of many a host's own name.
func (p place) loopback() bool {
	if ip, err := netip.ParseAddr(p.host); err == nil {
		return ip.Unmap().IsLoopback()
	}
	name := strings.ToLower(strings.TrimSuffix(p.host, "."))
	return name == "localhost" || name == "ip6-localhost" || strings.HasSuffix(name, ".localhost")
}

// check fills in what is left out, and returns the places and the choice of
// interfaces.
func (c *Config) check() (places []place, chosen choice, err error) {
	switch {
	case c.Size < 1 || c.Size > MaxSize:
		return nil, chosen, say.Errorf(rdma.ErrConfig, "size %d: expected 1 to %d ranks", c.Size, MaxSize)
	case c.Rank < 0 || c.Rank >= c.Size:
		return nil, chosen, say.Errorf(rdma.ErrConfig, "rank %d of %d: expected 0 to %d", c.Rank, c.Size, c.Size-1)
	case len(c.StoreFD) > 0 && c.Rank != 0:
		return nil, chosen, say.Errorf(rdma.ErrConfig, "store_fd=%d (MALT_STORE_FD) is for rank 0, which listens at the store; this is rank %d", c.StoreFD[0], c.Rank)
	case c.Size > 1 && c.Token == "":
		return nil, chosen, say.Errorf(rdma.ErrConfig, "store %.60q without a token: any process that reaches the store could join", c.Store).
			Try("Give all ranks the same secret (MALT_TOKEN), as malt run does.")
	case len(c.Version) > maxWord || len(c.Host) > maxWord:
		return nil, chosen, say.Errorf(rdma.ErrConfig, "version %.20q, host %.40q; the limit is %d bytes each", c.Version, c.Host, maxWord)
	}
	c.Unreachable = max(c.Unreachable, leastUnreachable)
	if places, err = parseStore(c.Store); err != nil && c.Size > 1 {
		return nil, chosen, err
	}
	chosen, err = parseInterface(c.Interface)
	return places, chosen, err
}

// together are the first and the last of the ranks that one launcher has started.
// Empty, it is not known.
type together []int

func parseTogether(text string, rank int) (together, error) {
	if text == "" {
		return nil, nil
	}
	first, last, _ := strings.Cut(text, "-")
	from, err := strconv.Atoi(first)
	to, err2 := strconv.Atoi(last)
	if t := (together{from, to}); err == nil && err2 == nil && t.check() == nil && from <= rank && rank <= to {
		return t, nil
	}
	return nil, say.Errorf(rdma.ErrConfig, "together=%.40s (MALT_TOGETHER) on rank %d does not name the ranks that were started with it", text, rank).
		Try("Write the first and the last of them, such as %d-%d.", rank, rank)
}

func (t together) check() error {
	if t != nil && (len(t) != 2 || t[0] < 0 || t[0] > t[1] || t[1] >= MaxSize) {
		return fmt.Errorf("together with ranks %v", []int(t))
	}
	return nil
}

// against tells whether t and o are of launchers that divided the ranks in
// different ways.
func (t together) against(o together) bool {
	return len(t) > 0 && len(o) > 0 && !slices.Equal(t, o) && t[0] <= o[1] && o[0] <= t[1]
}

func (t together) String() string {
	if len(t) == 0 {
		return "ranks that are not known"
	}
	return fmt.Sprintf("ranks %d to %d", t[0], t[1])
}

const maxPlaces = 16

func parseStore(store string) (places []place, err error) {
	for _, s := range strings.Split(store, ",") {
		host, port, err := net.SplitHostPort(strings.TrimSpace(s))
		n, perr := strconv.ParseUint(port, 10, 16)
		if err != nil || host == "" || perr != nil || n == 0 {
			return nil, say.Errorf(rdma.ErrConfig, "store %.60q (%s): expected host:port of rank 0", store, theStore).
				Try("Write, for example, node-1:29500 or [fd00::1]:29500; separate several by commas.")
		}
		places = append(places, place{host, uint16(n)})
	}
	if len(places) > maxPlaces {
		return nil, say.Errorf(rdma.ErrConfig, "a store of %d addresses; the limit is %d", len(places), maxPlaces)
	}
	return places, nil
}

// Package auto opens a transport by its name, or the one that fits best. It is
// the only place that knows all of them: a new transport is one line in known.
//
//	t, err := auto.Open(ctx, auto.Config{Rank: r, Size: n, Store: store, Token: token})
//
// If the store is host:port, ranks of several hosts may meet there. Ranks of the same
// host then share memory, and hosts are connected by tcp (hosts.go).
package auto

import (
	"context"
	"strings"
	"time"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/internal/handshake"
	"malt/rdma/remote"
	"malt/rdma/rendezvous"
	"malt/rdma/shm"
)

// Config is what a rank knows of its job before it has met the others. Each
// transport reads what it needs.
type Config struct {
	Rank, Size int
	Witnesses  int        // processes that are no ranks, and vote for hosts without any: their numbers are from Size on
	Store      string     // where the ranks meet: "local:" and the job's id, or host:port of rank 0
	StoreFD    []int      // sockets that listen there, for rank 0; none: it makes them
	Token      string     // the job's secret
	Encrypt    Encryption // which connections between hosts are encrypted
	Interface  string     // at which addresses other hosts can reach this rank; "": it looks
	Congestion string     // control of connections with other hosts; "": the system's
	// Fabric is as function Fabric has it: which provider, of the library in the file Libfabric. "": none.
	Fabric, Libfabric string
	Together          string // ranks that were started along with this one; see meeting.Config
	// Unreachable is for how long another host may give no sign of life before its
	// ranks are dead; 0: as tcp says.
	Unreachable time.Duration
	// Survives says that the job may go on when ranks die. All ranks say the same.
	Survives bool
	// Try is how often ranks of one machine have tried to meet again: see Return.
	Try       uint64
	Version   string // of MALT, the same on all ranks
	Host      string // the machine, for tests of several on one; "": as the kernel says
	Transport string // one of Names, or "auto"; "" is auto

	// Report, if not nil, is told now and then which ranks have not come to
	// host:port yet, as far as this one knows, what stands in the way, and what to do.
	Report func(absent []int, detail, do string)
}

// WhereSurvived is Config.Unreachable by default where the job may go on when ranks die.
const WhereSurvived = remote.WhereSurvived

// Encryption says which connections between hosts are encrypted: those of which an
// end has an address that is not private, all, or none.
type Encryption = handshake.Encryption

// What an Encryption can be.
const (
	EncryptByAddress = handshake.ByAddress
	EncryptAlways    = handshake.Always
	EncryptNever     = handshake.Never
)

// transport is one that can be opened.
type transport struct {
	name string
	open func(ctx context.Context, c Config) (rdma.Transport, error)
}

var known = []transport{
	{"shm", openShm},
	{"tcp", openTCP},
	{"inmem", openAlone},
}

// Names lists the transports that Open knows, without "auto".
func Names() []string {
	names := make([]string, len(known))
	for i, k := range known {
		names[i] = k.name
	}
	return names
}

// Open joins the job and returns when all ranks have arrived. A job of one rank
// needs no store.
func Open(ctx context.Context, c Config) (rdma.Transport, error) {
	switch c.Transport {
	case "", "auto":
		return best(c)(ctx, c)
	}
	for _, k := range known {
		if k.name == c.Transport {
			return k.open(ctx, c)
		}
	}
	return nil, say.Unknown(rdma.ErrConfig, "transport", c.Transport, append([]string{"auto"}, Names()...)...)
}

// best is this process for a rank alone, shared memory for those of one machine, and
// what the hosts of those who meet at an address allow.
func best(c Config) func(context.Context, Config) (rdma.Transport, error) {
	switch {
	case c.Size+c.Witnesses == 1:
		return openAlone
	case c.local() && c.Witnesses == 0:
		return openShm
	}
	return openHosts
}

// local tells whether the ranks meet in the memory of one machine.
func (c Config) local() bool { return c.Store == "" || strings.HasPrefix(c.Store, "local:") }

// Absent lists the ranks of the job that no process is at present, as far as can
// be told without Report: for messages while Open waits.
func Absent(c Config) []int {
	if !c.local() {
		return nil
	}
	return c.rendezvous().Absent()
}

func (c Config) rendezvous() *rendezvous.Config {
	return &rendezvous.Config{Rank: c.Rank, Size: max(c.Size, c.Rank+1), Store: c.Store, Token: c.Token, Try: c.Try}
}

// Return asks the ranks of a job on this machine to have this process take the place of c.Rank,
// which has died. It is rendezvous.Config.Return.
func Return(ctx context.Context, c Config, most uint64) (Config, context.Context, error) {
	r, until, err := c.rendezvous().Return(ctx, most)
	c.Try = r.Try
	return c, until, err
}

func openShm(ctx context.Context, c Config) (rdma.Transport, error) {
	if !c.local() {
		return openHere(ctx, c)
	}
	return opened(shm.Open(ctx, *c.rendezvous()))
}

// opened makes an interface of what has been opened, and nil of what has not.
func opened[T rdma.Transport](t T, err error) (rdma.Transport, error) {
	if err != nil {
		return nil, err
	}
	return t, nil
}

package auto

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/mixed"
	"malt/rdma/remote"
	"malt/rdma/rendezvous"
	"malt/rdma/rendezvous/meeting"
	"malt/rdma/shm"
	"malt/rdma/tcp"
	"malt/rdma/vote"
)

// met is what a rank knows once all have met at host:port.
type met struct {
	Config
	table     *meeting.Table
	listeners []net.Listener
	alone     bool // shared memory cannot be had
}

// meet waits for all ranks. What comes of it owns the listeners.
func meet(ctx context.Context, c Config) (*met, error) {
	if c.local() {
		return nil, say.Errorf(rdma.ErrConfig, "store %.60q is for ranks of one machine; tcp needs a store host:port", c.Store).
			Try("Rank 0 listens there; `malt run -H localhost:4` makes one.")
	}
	m := meeting.Config{
		Rank: c.Rank, Size: c.Size + c.Witnesses, Store: c.Store, StoreFD: c.StoreFD, Token: c.Token, Interface: c.Interface, Together: c.Together, Version: c.Version, Host: c.Host,
		Encrypt: c.Encrypt, Unreachable: c.Unreachable,
	}
	if c.Transport != "tcp" {
		switch err := rendezvous.Try(); {
		case err == nil:
		case c.Transport == "shm":
			return nil, err
		default:
			m.Alone = true // to others by tcp, of whatever host they are
		}
	}
	if c.Report != nil {
		m.Report = func(p meeting.Progress) { c.Report(p.Absent, p.Detail, p.Do) }
	}
	table, listeners, err := meeting.Meet(ctx, m)
	if err != nil {
		return nil, err
	}
	made := &met{c, table, listeners, m.Alone}
	for witness, host := range table.Hosts[c.Size:] {
		if there := made.on(host); len(there) > 1 {
			made.close()
			other := "another witness"
			if there[0] < c.Size {
				other = fmt.Sprintf("rank %d", there[0])
			}
			return nil, say.Errorf(rdma.ErrConfig, "witness %d is not alone on its host", witness).
				At("%s is on %s, too", other, table.Names[there[0]]).Try("Start it on a host without ranks: each host has one vote.")
		}
	}
	return made, nil
}

// Witness joins the job, before ctx ends, and votes there for a host without ranks, until no rank
// is left. joined is called when all have met. It fails with rdma.ErrExpelled where the others have gone on
// without this host.
func Witness(ctx context.Context, c Config, joined func()) error {
	t, err := openHosts(ctx, c)
	if err != nil {
		return err
	}
	defer t.Close()
	w, ok := t.(interface{ Witness() error })
	if !ok {
		return say.Errorf(rdma.ErrNotSupported, "a witness needs shared memory, which %s does without", t.Name())
	}
	joined()
	return w.Witness()
}

// openHosts is shared memory within each host, and tcp between hosts.
func openHosts(ctx context.Context, c Config) (rdma.Transport, error) {
	m, err := meet(ctx, c)
	if err != nil {
		return nil, err
	}
	if m.oneHost() {
		return m.shm(ctx)
	}
	if m.alone {
		return opened(m.tcp(ctx, nil))
	}
	return mixed.Open(m.voting(), func(elsewhere mixed.Elsewhere) (mixed.Near, error) {
		near := m.rendezvous()
		near.Members, near.Elsewhere = m.table.Near(), elsewhere.State
		if m.Survives {
			near.Hosts, near.Said = m.table.Hosts, elsewhere.Said
		}
		t, err := shm.Open(ctx, *near)
		if err != nil {
			m.close()
		}
		return t, err
	}, func(near mixed.Near) (mixed.Far, error) { return m.tcp(ctx, near) })
}

// voting is how the hosts decide who takes part; nil: a death ends the job.
func (m *met) voting() *mixed.Voting {
	if !m.Survives {
		return nil
	}
	return &mixed.Voting{
		Job: vote.Job{Hosts: 1 + slices.Max(m.table.Hosts), Of: m.table.Hosts, Witnesses: m.Witnesses}, Unreachable: cmp.Or(m.Unreachable, remote.WhereSurvived),
	}
}

// openTCP is tcp between all ranks, also of one host.
func openTCP(ctx context.Context, c Config) (rdma.Transport, error) {
	m, err := meet(ctx, c)
	if err != nil {
		return nil, err
	}
	return opened(m.tcp(ctx, nil))
}

// openHere is shared memory for ranks that have met by tcp.
func openHere(ctx context.Context, c Config) (rdma.Transport, error) {
	m, err := meet(ctx, c)
	if err != nil {
		return nil, err
	}
	if !m.oneHost() {
		m.close()
		return nil, say.Errorf(rdma.ErrConfig, "transport shm is for ranks of one host; these are on several").At("%s", m.hosts()).Try("Use auto.")
	}
	return m.shm(ctx)
}

// hosts says who is where: "ranks 0, 1 on alpha, rank 2 on beta".
func (m *met) hosts() string {
	var words []string
	for host := range 1 + slices.Max(m.table.Hosts) {
		ranks := m.on(host)
		words = append(words, fmt.Sprintf("%s on %s", say.Ranks(ranks), m.table.Names[ranks[0]]))
	}
	return strings.Join(words, ", ")
}

// on are the ranks of a host.
func (m *met) on(host int) (ranks []int) {
	for r, h := range m.table.Hosts {
		if h == host {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

func (m *met) oneHost() bool { return len(m.table.Near()) == len(m.table.Hosts) }

// close is for who needs no connections.
func (m *met) close() {
	for _, l := range m.listeners {
		l.Close()
	}
}

func (m *met) rendezvous() *rendezvous.Config {
	c := m.Config.rendezvous()
	c.Store = "local:" + m.table.Job
	return c
}

func (m *met) shm(ctx context.Context) (rdma.Transport, error) {
	m.close()
	return opened(shm.Open(ctx, *m.rendezvous()))
}

// tcp connects this rank with all others but near ones, with which it has a doorbell; nil:
// there are none.
func (m *met) tcp(ctx context.Context, near mixed.Near) (*remote.Transport, error) {
	c := remote.Config{Rank: m.Rank, Size: m.Size, Witnesses: m.Witnesses, Generation: m.table.Generation, Listening: true, Unreachable: m.Unreachable, Survives: m.Survives && near != nil}
	if near != nil {
		c.Near, c.Bell = near.Near(), near
	}
	var err error
	if c.Fabric, c.FabricNeeded, c.NoFabric, err = m.carrier(); err != nil {
		m.close()
		return nil, err
	}
	return remote.Open(ctx, c, tcp.New(tcp.Config{
		Job: m.table.Job, Token: []byte(m.Token), Listeners: m.listeners, Peers: m.table.Addresses, Congestion: m.Congestion, Encrypt: m.Encrypt,
	}))
}

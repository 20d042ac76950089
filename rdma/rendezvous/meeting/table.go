package meeting

import (
	"net"
	"net/netip"
	"slices"
)

// Table is what all ranks know when they have met.
type Table struct {
	Job        string // 32 hexadecimal digits, which no other job has
	Generation uint32 // of the membership: 1
	Rank       int    // of this process
	Hosts      []int  // the host of each rank; hosts are numbered by their lowest rank
	Names      []string
	// Addresses at which each rank listens, in the order in which this rank should
	// try them.
	Addresses [][]string
}

// Near lists the ranks of this rank's host, itself among them, ascending.
func (t *Table) Near() (ranks []int) {
	for r, h := range t.Hosts {
		if h == t.Hosts[t.Rank] {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// seatCard is what the table says of a rank.
type seatCard struct {
	Host      int              `json:"host"`    // dense
	Network   int              `json:"network"` // dense: the same number has the same addresses
	Name      string           `json:"name"`    // of the host, for messages
	Addresses []netip.AddrPort `json:"addresses"`
}

// layout makes the table of what all ranks have said.
func layout(job string, cards []*card) *tableMessage {
	hosts, networks := map[string]int{}, map[string]int{}
	dense := func(m map[string]int, key string) int {
		n, ok := m[key]
		if !ok {
			n = len(m)
			m[key] = n
		}
		return n
	}
	t := &tableMessage{Job: job, Generation: 1}
	for _, c := range cards {
		t.Ranks = append(t.Ranks, seatCard{
			Host: dense(hosts, c.Host), Network: dense(networks, c.Network), Name: c.Name, Addresses: c.Addresses,
		})
	}
	return t
}

// view is the table as rank sees it. own are the addresses of its network, and
// met is where it met rank 0, or the zero Addr: of rank 0's addresses the one
// that is known to work.
func (m *tableMessage) view(rank int, own []netip.Addr, met netip.Addr, zones []string) *Table {
	t := &Table{Job: m.Job, Generation: m.Generation, Rank: rank}
	for r, c := range m.Ranks {
		t.Hosts = append(t.Hosts, c.Host)
		t.Names = append(t.Names, c.Name)
		all := slices.Clone(c.Addresses)
		if c.Network != m.Ranks[rank].Network {
			// An address that this host has as well, such as that of a bridge for
			// containers, leads nowhere.
			foreign := slices.DeleteFunc(slices.Clone(all), func(a netip.AddrPort) bool { return slices.Contains(own, a.Addr()) })
			if len(foreign) > 0 {
				all = foreign
			}
		}
		if i := slices.IndexFunc(all, func(a netip.AddrPort) bool { return r == 0 && a.Addr() == met }); i > 0 {
			all = slices.Insert(slices.Delete(slices.Clone(all), i, i+1), 0, all[i])
		}
		var words []string
		for _, a := range all {
			words = append(words, reachable(a, zones)...)
		}
		t.Addresses = append(t.Addresses, words)
	}
	return t
}

// reachable is an address as it can be dialled from here: one that holds on one
// link only needs the name of an interface of this host.
func reachable(a netip.AddrPort, zones []string) (words []string) {
	if ip := a.Addr(); ip.Is6() && ip.IsLinkLocalUnicast() && len(zones) > 0 {
		for _, z := range zones {
			words = append(words, netip.AddrPortFrom(ip.WithZone(z), a.Port()).String())
		}
		return words
	}
	return []string{a.String()}
}

// addrOf is the address without the port.
func addrOf(a net.Addr) netip.Addr {
	if t, ok := a.(*net.TCPAddr); ok {
		return t.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

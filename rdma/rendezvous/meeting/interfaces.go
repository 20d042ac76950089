package meeting

import (
	"net"
	"net/netip"
	"path"
	"slices"
	"strings"

	"malt/internal/say"
	"malt/rdma"
)

// address is one that this host has.
type address struct {
	ip    netip.Addr // without zone
	iface string
}

// ownAddresses lists the addresses of all interfaces that are up.
func ownAddresses() (all []address, err error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, say.Errorf(err, "the network interfaces cannot be listed: %v", err)
	}
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		list, err := i.Addrs()
		if err != nil {
			continue // it has just gone
		}
		for _, a := range list {
			if n, ok := a.(*net.IPNet); ok {
				if ip, ok := netip.AddrFromSlice(n.IP); ok {
					all = append(all, address{ip.Unmap(), i.Name})
				}
			}
		}
	}
	return all, nil
}

// zoned is the address as it is listened at.
func (a address) zoned() netip.Addr {
	if a.ip.Is6() && a.ip.IsLinkLocalUnicast() {
		return a.ip.WithZone(a.iface)
	}
	return a.ip
}

// choice is Config.Interface.
type choice struct {
	text    string
	except  bool
	entries []string
	nets    []netip.Prefix // by entry; not valid: a name
}

func parseInterface(text string) (c choice, err error) {
	c.text = text
	rest, except := strings.CutPrefix(text, "^")
	c.except = except
	if text == "" {
		return c, nil
	}
	for _, s := range strings.Split(rest, ",") {
		s = strings.TrimSpace(s)
		var n netip.Prefix
		if ip, err := netip.ParseAddr(s); err == nil {
			n = netip.PrefixFrom(ip.Unmap(), ip.Unmap().BitLen())
		} else if p, err := netip.ParsePrefix(s); err == nil {
			n = p.Masked()
		} else if _, err := path.Match(s, ""); err != nil || s == "" || strings.ContainsAny(s, "/^") {
			return c, say.Errorf(rdma.ErrConfig, "interface=%.60s (MALT_INTERFACE): %.40q is neither an interface nor a network", text, s).
				Try("Write eth0, eth* or 10.1.0.0/16; separate several by commas; ^ in front means all others.")
		}
		c.entries, c.nets = append(c.entries, s), append(c.nets, n)
	}
	return c, nil
}

// takes tells whether a is chosen.
func (c *choice) takes(a address) bool {
	if len(c.entries) == 0 {
		return true
	}
	named := false
	for i, s := range c.entries {
		if c.nets[i].IsValid() {
			named = named || c.nets[i].Contains(a.ip)
		} else if ok, _ := path.Match(s, a.iface); ok {
			named = true
		}
	}
	return named != c.except
}

// takesIP tells whether ip, one of own or a loopback address, may be listened at.
func (c *choice) takesIP(ip netip.Addr, own []address) bool {
	return ip.IsLoopback() || slices.ContainsFunc(own, func(a address) bool { return a.ip == ip.WithZone("") && c.takes(a) })
}

// virtual are the beginnings of the names of interfaces that lead to containers
// and virtual machines of this host, with the same addresses on every host.
var virtual = []string{"docker", "br-", "veth", "virbr", "vnet", "lxcbr", "lxdbr", "podman", "cni", "cali", "flannel", "kube-", "nodelocaldns"}

// kinds of addresses, the best first.
const (
	known    = iota // somebody was reached by it
	ordinary        // that other hosts might reach
	link            // that hosts on the same link might
	bridge          // that containers of this host might
	loop            // that this host might
	kinds
)

func (a address) kind() int {
	switch {
	case a.ip.IsLoopback():
		return loop
	case slices.ContainsFunc(virtual, func(v string) bool { return strings.HasPrefix(a.iface, v) }):
		return bridge
	case a.ip.IsLinkLocalUnicast():
		return link
	}
	return ordinary
}

// candidates are the addresses at which a rank listens, in the order in which
// others should try them: those in met, by which it is known to have been
// reached or to have reached rank 0, and the others of the best kind that there
// is. Where the store is of this host only, inside, nobody else is to get in.
func candidates(all []address, met []netip.Addr, inside bool, c choice) ([]address, error) {
	var byKind [kinds][]address
	for _, a := range all {
		if !c.takes(a) {
			continue
		}
		k := a.kind()
		if slices.Contains(met, a.ip) && (k != loop || inside) {
			k = known
		} else if len(c.entries) > 0 && !c.except {
			k = ordinary // somebody has decided
		}
		byKind[k] = append(byKind[k], a)
	}
	slices.SortStableFunc(byKind[known], func(a, b address) int {
		return slices.Index(met, a.ip) - slices.Index(met, b.ip)
	})
	found := byKind[known]
	if !inside || len(found) == 0 {
		found = append(found, byKind[ordinary]...)
	}
	for k := link; k < kinds && len(found) == 0; k++ {
		found = byKind[k]
	}
	if len(found) == 0 {
		return nil, say.Errorf(rdma.ErrConfig, "interface=%.60s (MALT_INTERFACE) leaves no address of this host", c.text).At("it has %s", describe(all))
	}
	return found[:min(len(found), maxListeners)], nil
}

// maxListeners is at how many addresses a rank listens.
const maxListeners = 8

func describe(all []address) string {
	if len(all) == 0 {
		return "none: no network interface is up"
	}
	words := make([]string, len(all))
	for i, a := range all {
		words[i] = a.iface + " " + a.ip.String()
	}
	return strings.Join(words, ", ")
}

// listen takes a port at each address.
func listen(all []address) (ls []net.Listener, at []netip.AddrPort, err error) {
	for _, a := range all {
		l, lerr := net.Listen("tcp", netip.AddrPortFrom(a.zoned(), 0).String())
		if lerr != nil { // an address that is not ready, or just gone
			err = lerr
			continue
		}
		ls = append(ls, l)
		at = append(at, netip.AddrPortFrom(a.ip, uint16(l.Addr().(*net.TCPAddr).Port)))
	}
	if len(ls) == 0 {
		return nil, nil, say.Errorf(err, "this rank can listen at none of its addresses: %v", err).At("they are %s", describe(all))
	}
	return ls, at, nil
}

// zones are the interfaces by which a link-local address could be reached.
func zones(all []address) (names []string) {
	for _, a := range all {
		if a.kind() == link && a.ip.Is6() {
			names = append(names, a.iface)
		}
	}
	return names
}

func ips(all []address) (list []netip.Addr) {
	for _, a := range all {
		list = append(list, a.ip)
	}
	return list
}

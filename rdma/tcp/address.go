package tcp

import (
	"net"
	"net/netip"
	"slices"
)

// A rank may listen at several addresses, of which a peer can reach some. Which
// one, the first connection of a link decides, alike at both ends: from then on
// the two meet there only, so that a refusal says that the process is gone, and
// what nobody uses can be closed.

// addresses are where the peer may be, in the order in which to try them.
func (l *link) addresses() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.to
}

// putLast has address, where somebody else answered, tried after the others.
func (l *link) putLast(address string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if i := slices.Index(l.to, address); i >= 0 {
		l.to = append(slices.Concat(l.to[:i], l.to[i+1:]), address)
	}
}

// settle has the link stay with the addresses of its first connection. A peer
// that comes from none at which it listens, from behind a translation of
// addresses, may be at any.
func (l *link) settle(c *conn) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.from = hostOf(c.LocalAddr())
	there := hostOf(c.RemoteAddr())
	at := slices.DeleteFunc(slices.Clone(l.to), func(a string) bool {
		if c.address != "" {
			return a != c.address
		}
		ip, err := netip.ParseAddrPort(a)
		return err != nil || ip.Addr().Unmap().WithZone("") != there
	})
	if len(at) > 0 {
		l.to = at
	}
}

// keepDoors closes the listeners at which no peer looks for this rank.
func (r *rank) keepDoors() {
	var used []netip.Addr
	for _, l := range r.links {
		if l == nil {
			continue
		}
		l.mu.Lock()
		from := l.from
		l.mu.Unlock()
		if !slices.ContainsFunc(r.cfg.Listeners, func(d net.Listener) bool { return hostOf(d.Addr()) == from }) {
			return // the peer may look for it at any
		}
		used = append(used, from)
	}
	r.door.Keep(func(d net.Listener) bool { return slices.Contains(used, hostOf(d.Addr())) })
}

// hostOf is an address without port and zone.
func hostOf(a net.Addr) netip.Addr {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Addr{}
	}
	return t.AddrPort().Addr().Unmap().WithZone("")
}

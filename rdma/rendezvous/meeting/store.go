package meeting

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"malt/internal/say"
	"malt/rdma"
)

// store is what rank 0 listens with until all have met.
type store struct {
	listeners []net.Listener
	note      string // what is odd about it, for messages
}

func (s *store) close() {
	for _, l := range s.listeners {
		l.Close()
	}
}

func (s *store) String() string {
	var all []string
	for _, l := range s.listeners {
		all = append(all, l.Addr().String())
	}
	return strings.Join(all, ", ")
}

// lookupPatience is for the names in a store on rank 0, which can do without.
const lookupPatience = 2 * time.Second

// openStore listens at those addresses of the store that are this host's, or
// else at all that this host has; never at one of the network that chosen leaves
// out. Loopback addresses are of no network, so they need not be chosen.
func openStore(ctx context.Context, places []place, own []address, chosen choice, lookup lookup) (*store, error) {
	s := new(store)
	var at []netip.AddrPort
	var refused []string    // what the store means on this host, where chosen leaves it out
	var inside []netip.Addr // loopback addresses that a name here means, as /etc/hosts often says
	for _, p := range places {
		ips, err := lookup(ctx, p.host)
		if err != nil {
			s.note = fmt.Sprintf("the host of rank 0 cannot resolve %s (%v)", p.host, err)
			continue
		}
		mine := slices.DeleteFunc(slices.Clone(ips), func(ip netip.Addr) bool {
			return ip.IsLoopback() != p.loopback() || !ip.IsLoopback() && !slices.ContainsFunc(own, func(a address) bool { return a.ip == ip.WithZone("") })
		})
		if len(mine) == 0 {
			s.note = fmt.Sprintf("%s is not an address at which others could reach the host of rank 0", p.resolved(ips))
		}
		for _, ip := range ips {
			if ip.IsLoopback() && !p.loopback() {
				inside = append(inside, ip)
			}
		}
		for _, ip := range mine {
			if chosen.takesIP(ip, own) {
				at = append(at, netip.AddrPortFrom(ip, p.port))
			} else if where := p.resolved(mine); !slices.Contains(refused, where) {
				refused = append(refused, where)
			}
		}
	}
	if len(at) > 0 {
		s.note = ""
	} else if len(refused) > 0 {
		allowed, err := candidates(own, nil, false, chosen)
		if err != nil {
			return nil, err
		}
		return nil, say.Errorf(rdma.ErrConfig, "rank 0 may not listen at its store %s: interface=%.60s (MALT_INTERFACE) excludes it", strings.Join(refused, ", "), chosen.text).
			At("on the host of rank 0 it allows %s", describe(allowed)).
			Try("Name one of these addresses as the store (%s), or a network of the store in MALT_INTERFACE.", theStore)
	} else {
		for _, p := range places {
			all, err := everywhere(p.port, own, inside, chosen)
			if err != nil {
				return nil, err
			}
			at = append(at, all...)
		}
	}
	var failed error
	for i, a := range at {
		if slices.Contains(at[:i], a) {
			continue
		}
		l, err := net.Listen("tcp", a.String())
		if errors.Is(err, syscall.EADDRINUSE) {
			s.close()
			return nil, say.Errorf(syscall.EADDRINUSE, "rank 0 cannot listen at %s: the address is in use, by %s", a, holder(a.Port())).
				At("if that is rank 0 of this job, this rank needs another number (%s)", theRank).Try("End that process, or choose another port (%s).", theStore)
		}
		if err != nil {
			failed = err
			continue
		}
		s.listeners = append(s.listeners, l)
	}
	if len(s.listeners) == 0 {
		return nil, say.Errorf(failed, "rank 0 cannot listen at its store %s: %v", places[0], failed).
			Try("The store must be an address of the host of rank 0, with a free port (%s).", theStore)
	}
	if s.note != "" {
		s.note += fmt.Sprintf("; rank 0 listens at %v", s)
	}
	return s, nil
}

// everywhere is where rank 0 listens if the store says nothing about this host:
// at the addresses at which ranks would, and at those of this host alone by which its own ranks
// may find it.
func everywhere(port uint16, own []address, inside []netip.Addr, chosen choice) (at []netip.AddrPort, err error) {
	all, err := candidates(own, nil, false, chosen)
	for _, a := range all {
		at = append(at, netip.AddrPortFrom(a.zoned(), port))
	}
	for _, ip := range inside {
		at = append(at, netip.AddrPortFrom(ip, port))
	}
	return at, err
}

// lookup finds the addresses of a name.
type lookup func(ctx context.Context, host string) ([]netip.Addr, error)

func resolve(ctx context.Context, host string) (ips []netip.Addr, err error) {
	if ip, err := netip.ParseAddr(host); err == nil {
		return []netip.Addr{ip.Unmap()}, nil
	}
	ctx, cancel := context.WithTimeout(ctx, lookupPatience)
	defer cancel()
	ips, err = net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	for i := range ips {
		ips[i] = ips[i].Unmap()
	}
	return ips, err
}

// resolved is the host of a place with its addresses.
func (p place) resolved(ips []netip.Addr) string {
	words := make([]string, len(ips))
	for i, ip := range ips {
		words[i] = ip.String()
	}
	if all := strings.Join(words, ", "); all != p.host {
		return p.host + " (" + all + ")"
	}
	return p.host
}

// inherit takes over listening sockets.
func inherit(fds []int) (*store, error) {
	s := new(store)
	for _, fd := range fds {
		l, err := inheritOne(fd)
		if err != nil {
			s.close()
			return nil, err
		}
		s.listeners = append(s.listeners, l)
	}
	return s, nil
}

func inheritOne(fd int) (net.Listener, error) {
	listening, err := syscall.GetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_ACCEPTCONN)
	if err != nil || listening == 0 {
		return nil, say.Errorf(rdma.ErrConfig, "store_fd=%d (MALT_STORE_FD): descriptor %d is not a socket that listens", fd, fd).
			Try("Rank 0 has to inherit one, bound to the port of its store.")
	}
	_ = syscall.Listen(fd, MaxSize) // what others chose is for few
	f := os.NewFile(uintptr(fd), "store")
	defer f.Close()
	l, err := net.FileListener(f)
	if err != nil {
		return nil, say.Errorf(rdma.ErrConfig, "store_fd=%d (MALT_STORE_FD): %v: expected a TCP socket that listens", fd, err)
	}
	t, ok := l.(*net.TCPListener)
	if !ok {
		l.Close()
		return nil, say.Errorf(rdma.ErrConfig, "store_fd=%d (MALT_STORE_FD): a socket of %s: expected a TCP socket that listens", fd, l.Addr().Network())
	}
	return t, nil
}

package mem

import (
	"net"
	"net/netip"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Socket is what the kernel knows of a TCP connection.
type Socket struct {
	Silence time.Duration // since the other end's kernel acknowledged anything; 0 once it has ended, since then it owes nothing
	Ended   bool          // though there may be something to read yet
	Acked   uint64        // bytes that the other end's kernel has
	Unacked bool          // something is under way, or should be, that it has not acknowledged
	Full    bool          // it had no room for what is to be sent
	Queued  int           // bytes that it has not acknowledged, also those not sent yet
	Resent  uint64        // bytes that were sent again
	Ahead   int           // packets that came before one which was sent earlier
	Segment int           // bytes of the largest packet's payload
	Asked   int           // how often in a row it was asked, though nothing is under way, and has not answered
}

// TCPState asks the kernel about the connection behind fd.
func TCPState(fd int) (Socket, error) {
	i, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
	if err != nil {
		return Socket{}, err
	}
	s := Socket{
		Silence: time.Duration(i.Last_ack_recv) * time.Millisecond,
		Acked:   i.Bytes_acked,
		Unacked: i.Unacked > 0 || i.Notsent_bytes > 0 && i.Snd_wnd > 0, // without a route nothing is ever under way
		Full:    i.Notsent_bytes > 0 && i.Unacked == 0,
		Resent:  i.Bytes_retrans,
		Ahead:   int(i.Rcv_ooopack),
		Segment: int(i.Snd_mss),
		Asked:   int(i.Probes),
	}
	s.Queued, _ = unix.IoctlGetInt(fd, unix.TIOCOUTQ) // SIOCOUTQ
	if i.State == unix.BPF_TCP_CLOSE {
		s.Silence, s.Ended = 0, true
	}
	return s, nil
}

// SetTCP tunes a connection: who is idle asks every second whether the other
// kernel is there; at most unsent bytes wait in this one, so that what is
// written is the newest there is; congestion is the name of an algorithm, "" the
// system's.
func SetTCP(fd, unsent int, congestion string) error {
	for _, o := range [][2]int{
		{unix.TCP_NODELAY, 1}, {unix.TCP_KEEPIDLE, 1}, {unix.TCP_KEEPINTVL, 1},
		// The kernel must not decide: after an outage it gives up sooner than told,
		// and it cannot tell a process that is stopped from a host that is away.
		{unix.TCP_KEEPCNT, 127}, {unix.TCP_NOTSENT_LOWAT, unsent},
	} {
		if err := unix.SetsockoptInt(fd, unix.IPPROTO_TCP, o[0], o[1]); err != nil {
			return err
		}
	}
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1); err != nil || congestion == "" {
		return err
	}
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, congestion)
}

// DeferAccept has a listener accept who has said something, or is connected for a
// second. It leaves others to the kernel, which must be able to answer (by SYN
// cookies) when it has too many of them.
func DeferAccept(l any) {
	cookies, _ := os.ReadFile("/proc/sys/net/ipv4/tcp_syncookies")
	c, ok := l.(syscall.Conn)
	if !ok || len(cookies) == 0 || cookies[0] == '0' {
		return
	}
	if rc, err := c.SyscallConn(); err == nil {
		_ = rc.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_DEFER_ACCEPT, 1) })
	}
}

// TryCongestion tells whether a connection may have the named congestion control.
func TryCongestion(name string) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil // it will be seen
	}
	defer unix.Close(fd)
	return unix.SetsockoptString(fd, unix.IPPROTO_TCP, unix.TCP_CONGESTION, name)
}

// Write writes all of b, or as much of it as goes at once where fd does not block.
func Write(fd int, b [][]byte) (int, error) { return unix.Writev(fd, b) }

// Refused dials an address and tells whether its host itself refuses, since nobody
// listens there: a firewall, or the network, may say the same, in an ICMP message.
// Where nothing comes back in time, nobody has refused.
func Refused(at netip.AddrPort, within time.Duration) bool {
	family, level, option := unix.AF_INET, unix.IPPROTO_IP, unix.IP_RECVERR
	to := unix.Sockaddr(&unix.SockaddrInet4{Port: int(at.Port())})
	if ip := at.Addr().Unmap(); ip.Is4() {
		to.(*unix.SockaddrInet4).Addr = ip.As4()
	} else {
		family, level, option = unix.AF_INET6, unix.IPPROTO_IPV6, unix.IPV6_RECVERR
		six := &unix.SockaddrInet6{Port: int(at.Port()), Addr: ip.As16()}
		if i, err := net.InterfaceByName(ip.Zone()); err == nil {
			six.ZoneId = uint32(i.Index)
		}
		to = six
	}
	fd, err := unix.Socket(family, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return true // no reason to doubt what was said before
	}
	track(fd)
	defer func() { untrack(fd); _ = unix.Close(fd) }()
	_ = unix.SetsockoptInt(fd, level, option, 1) // has the kernel keep what ICMP says
	switch err := unix.Connect(fd, to); err {
	case unix.ECONNREFUSED:
	case unix.EINPROGRESS:
		poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}
		if n, _ := unix.Poll(poll, int(within/time.Millisecond)); n == 0 {
			return false
		}
		switch code, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_ERROR); {
		case err != nil || code == 0: // somebody listens by now
			return true
		case code != int(unix.ECONNREFUSED):
			return false
		}
	default:
		return false
	}
	_, _, _, _, err = unix.Recvmsg(fd, nil, make([]byte, 512), unix.MSG_ERRQUEUE)
	return err != nil // nothing is kept: it was a TCP reset
}

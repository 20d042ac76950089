package dial

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"
	"time"

	"malt/rdma/internal/mem"
)

// Silent is why a rank is dead whose host has given no sign of life for so long, at
// the addresses where it was. why is how an attempt to reach it failed; nil: no
// attempt says more.
func Silent(limit time.Duration, why error, at ...string) error {
	way := NoWay(why)
	if way == "" {
		way = "it is off, or the network is cut"
	}
	return fmt.Errorf("its host has not answered for %v at %s: %s (MALT_UNREACHABLE sets the limit)", limit, strings.Join(at, ", "), way)
}

// noWay is what connect(2) fails with where nothing has come back from the host.
var noWay = map[syscall.Errno]string{
	syscall.EHOSTUNREACH:  "no route leads to it, or nothing answers at its address",
	syscall.ENETUNREACH:   "this host has no route to it",
	syscall.EINVAL:        "a route of this host discards packets to it (blackhole; see ip route)",
	syscall.EACCES:        "a route or a firewall of this host forbids packets to it (prohibit; see ip route)",
	syscall.EPERM:         "a firewall of this host forbids packets to it",
	syscall.ENETDOWN:      "the network interface of this host is down",
	syscall.EHOSTDOWN:     "it is off, or the network is cut",
	syscall.EADDRNOTAVAIL: "this host has no address in its network",
}

// NoWay says what keeps this host from reaching another one, where an attempt failed
// with err; "" where that does not say so.
func NoWay(err error) string {
	if errors.As(err, new(*RejectedError)) {
		return "a firewall rejects connections to it"
	}
	var no syscall.Errno
	if errors.As(err, &no) {
		return noWay[no]
	}
	return ""
}

// RejectedError is a refusal that is not the host's own: it came as an ICMP message.
type RejectedError struct{ At net.Addr }

func (e *RejectedError) Error() string {
	return fmt.Sprintf("a firewall rejects connections to %v", e.At)
}

// Refusal is err, how an attempt to connect failed. One that was refused is asked
// about once more, for so long: unless the host itself refuses, it is a
// *RejectedError.
func Refusal(err error, within time.Duration) error {
	var op *net.OpError
	if !errors.Is(err, syscall.ECONNREFUSED) || !errors.As(err, &op) {
		return err
	}
	if to, ok := op.Addr.(*net.TCPAddr); ok && !mem.Refused(to.AddrPort(), within) {
		return &RejectedError{to}
	}
	return err
}

// Unanswered tells whether err says that nothing came back from the host.
func Unanswered(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout() || NoWay(err) != ""
}

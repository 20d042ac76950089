// Package wire is what replication between hosts (rdma/remote) needs of a network.
//
//	t, err := remote.Open(ctx, remote.Config{Rank: r, Size: n, …}, tcp.New(tcp.Config{…}))
//
// # Caveats
//
// A Wire decides who is let in: only a process that has proved that it belongs to the
// job gets past Prove and Permit. The one that dials speaks first.
//
// Errors say what is known of the other end, in the terms of package syscall:
// ECONNREFUSED, nobody listens there; io.EOF, ECONNRESET and EPIPE, the other end has
// ended the connection; a timeout or an error of dial.NoWay, nothing came back from its
// host. A *handshake.Refusal and handshake.ErrStranger come from Prove.
package wire

import (
	"context"
	"time"

	"malt/rdma/internal/handshake"
	"malt/rdma/internal/mem"
)

// Wire makes the connections of one rank.
type Wire interface {
	Name() string
	// Listen lets others in, on behalf of h. It comes first.
	Listen(h Host) error
	// Dial makes a connection to a peer. An attempt has so long at each address, at which
	// another one is made a while after the last.
	Dial(ctx context.Context, peer int, given, apart time.Duration) (Conn, error)
	// Addresses are those where a rank may be, in the order in which they are tried; of
	// this rank, where it listens.
	Addresses(rank int) []string
	// Settle is told of the first connection with a peer: from now on the two meet at its
	// addresses only.
	Settle(peer int, c Conn)
	// Settled is told that all peers have settled.
	Settled()
	// Close ends listening, and returns when nothing is offered any more.
	Close()
}

// Host is the rank for which a Wire listens.
type Host struct {
	Rank, Size int
	Generation uint32 // of the membership
	// Permit judges a rank, and what names its process, once it has proved that it
	// belongs to the job.
	Permit func(rank int, incarnation uint64) handshake.Verdict
	// Offer hands over a connection that a permitted rank has made.
	Offer func(rank int, c Conn)
}

// Conn is a connection, a stream of bytes in each direction. Its methods can be called by several
// goroutines, but one at a time reads, and one writes.
type Conn interface {
	// Prove shakes hands, at the end that has dialled; permit judges what names the
	// process at the other end.
	Prove(permit func(incarnation uint64) handshake.Verdict) error
	// Knock says the beginning of a handshake, which that host's kernel acknowledges.
	Knock()

	Read(b []byte) (int, error)
	// Write writes a and then b.
	Write(a, b []byte) error

	// Inline tells whether there are TryRead, TryWrite and Await.
	Inline() bool
	// TryRead reads what has come, if anything has.
	TryRead(b []byte) (int, error)
	// TryWrite writes what goes at once of a and then b. The next Write says what is
	// wrong with the connection.
	TryWrite(a, b []byte) int
	// Await calls arrived at once, and again whenever something has come, until that is
	// true.
	Await(arrived func() bool) error

	SetReadDeadline(time.Time) error
	SetWriteDeadline(time.Time) error
	CloseWrite() error // nothing more comes
	Close() error      // can come at any time, also twice
	Reset()            // is Close, and nothing of what was written stays with the kernel

	// State is what the kernel knows of the other end; not ok once closed.
	State() (s mem.Socket, ok bool)
	// Carried is how many bytes were written and read, with all that protects them.
	Carried() (sent, received uint64)
	Address() string // of the other end
}

// Package handshake lets two processes that connect over TCP prove to each other that
// they belong to one job. Both know its token, which does not travel.
//
//	p := handshake.Protocol{Magic: 0x…, Name: "MALT rdma/tcp"}
//	self := handshake.New(p, token, handshake.Hello{From: rank, Size: n, …})
//	theirs, err := self.Dial(conn, 0)
//	secure, hello, err := self.Greet(conn, tlsConfig, permit)
//
// docs/developers/wire.md has the messages. A listener has a Door, which admits a
// limited number of strangers at a time.
//
// # Caveats
//
// Neither end has a time limit: set a deadline on the connection.
//
// Over TLS, give Dial the *tls.Conn itself: a wrapper would hide the session, which
// the proofs cover.
package handshake

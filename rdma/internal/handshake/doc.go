// Package handshake is how two processes that connect over TCP prove to each
// other that they belong to one job: both have its token, which does not travel.
//
//	p := handshake.Protocol{Magic: 0x…, Name: "MALT rdma/tcp"}
//	self := handshake.New(p, token, handshake.Hello{From: rank, Size: n, …})
//	theirs, err := self.Dial(conn, 0)
//	secure, hello, err := self.Greet(conn, tlsConfig, permit)
//
// The messages are in docs/developers/wire.md. Who listens has a Door, which bears with few
// strangers at a time.
//
// # Caveats
//
// Neither end has a time limit of its own: set a deadline on the connection.
//
// Over TLS, give Dial the *tls.Conn itself: what is around it would hide the
// session, which the proofs cover.
package handshake

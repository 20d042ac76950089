// Package tcp is the transport between machines: it keeps replicas of boxes.
//
//	t, err := tcp.Open(ctx, tcp.Config{Rank: r, Size: n, Job: id, Token: secret, Listeners: ls, Peers: addresses})
//
// A box lies in memory of the rank that publishes it. For each reader a relay
// (box.Relay) takes updates out of it, as any reader would, and one goroutine
// per peer sends what all its relays have. At the reader one goroutine per peer
// lands what comes in a box.Replica, whose memory is made when it is first used;
// an Inbox reads that, and who finds nothing there lands what has come meanwhile. So a sender never waits for a link: what is replaced
// before it could be sent is not sent. In the caller's goroutine only small updates are
// written, if the connection takes them at once, and an update lands while the
// caller computes or sleeps.
//
// The protocol, with its frames and limits, is in docs/developers/wire.md.
//
// # Files
//
//	link.go connect.go door.go reach.go leave.go missing.go  one peer: its connections, and whether it lives
//	hearsay.go                                               deaths that others have found
//	send*.go quick.go land*.go input.go frame.go conn.go tables.go  what goes over a connection
//	outbox.go inbox.go words.go shared.go  what the caller holds, and what carries it
//
// # Caveats
//
// What one rank does another sees later; order is kept as docs/developers/wire.md says:
// whoever sees a word, an update of a queue or a clock has what was published
// before. Subscribe returns when the sender knows of it, so that what it
// publishes from then on comes even if it leaves.
//
// Lack of memory for a replica is an error of the Inbox from then on, since the
// sender cannot be told.
//
// Update.Data and what Begin returned must not be touched after the box or the
// transport is closed: the memory may be unmapped. Nobody is near: a Shared is this
// rank's alone.
//
// # Replicas
//
// Network replicas are one per reading rank, so frames need no mask of readers.
// What is in a queue, a clock without an update, and words reach a peer after
// everything that was published to it before them, as within a machine; else
// levelling and barriers would not hold. A lock-step update therefore never
// comes after the word that announces it. After a reconnection nothing is sent
// before the peer has said what it has of *every* box, or a word could overtake
// the update that the last connection lost.
//
// Excuse over a network: who is excused and who is back is heard at different
// times. The reader skips what is lost and nothing else
// (rdma/box/relay_queue.go); what is under way when it is overwritten goes on
// without payload.
package tcp

// Package remote is the transport between machines: it keeps replicas of boxes.
//
//	t, err := remote.Open(ctx, remote.Config{Rank: r, Size: n}, w)   // w is a wire.Wire, such as tcp.New makes
//
// A box lies in the memory of the rank that publishes it. For each reader, a relay
// (box.Relay) takes updates out of it, as any reader would, and one goroutine per
// peer sends the updates of all its relays. At the reader, one goroutine per peer
// lands incoming updates in a box.Replica, whose memory is made when it is first
// used. An Inbox reads the replica; if it finds nothing new, it lands the updates
// that have arrived meanwhile. A sender never waits for a link: an update that is
// replaced before it could be sent is not sent. The caller's goroutine writes small
// updates itself, if the connection takes them at once. Updates land while the
// caller computes or sleeps.
//
// docs/developers/wire.md has the protocol, with its frames and limits.
//
// # Files
//
//	link.go connect.go reach.go leave.go missing.go  one peer: its connections, and whether it is alive
//	hearsay.go                                       deaths that others have found
//	survive.go votes.go                              jobs that go on when a rank dies
//	session.go send*.go eager.go land*.go input.go frame.go conn.go tables.go  the traffic of a connection
//	card.go pair.go placing.go rooms.go ring.go      payload past the connection (RDMA)
//	outbox.go inbox.go words.go shared.go  the caller's objects, and the code that carries them
//
// # Locks
//
// A goroutine that holds one of these locks takes only those of the lines below it:
//
//	the lock of an Outbox or an Inbox
//	session.turn, input.turn                  one of them; if an end is locked, only by TryLock
//	publication.using (box.End.Lock), rank.mu one of them
//	link.mu, rooms.lock                       one of them
//	conn.mu, and the locks of a Wire, ends.Set, lease and votes
//	slots.mu, then card.mu, then later and the locks of a Carrier
//
// # Caveats
//
// A rank's actions become visible to another rank later. The order is that of
// docs/developers/wire.md: a rank that sees a word, an update of a queue or a clock
// has everything that was published before. Subscribe returns when the sender knows
// of it, so later updates arrive even if the sender leaves.
//
// If there is no memory for a replica, the Inbox returns this error from then on,
// because the sender cannot be told.
//
// Update.Data and the result of Begin must not be used after the box or the
// transport is closed: the memory may be unmapped. No other rank is near, so a
// Shared belongs to this rank alone.
//
// # Replicas
//
// Each reading rank has its own replica, so frames need no mask of readers. Queued
// updates, a clock without an update, and words reach a peer after everything that
// was published to it before them, as within a machine; levelling and barriers
// depend on this. So a lock-step update never arrives after the word that announces
// it. After a reconnection, nothing is sent before the peer has reported its
// progress in *every* box; otherwise a word could overtake the update that the last
// connection lost.
//
// Over a network, ranks learn at different times that a reader is excused or back.
// The reader skips the updates that are lost, and no others
// (rdma/box/relay_queue.go). An update that is overwritten while it is in flight
// goes on without payload.
//
// The reader may be told what to skip while a card writes what is skipped into a room. That room stays
// out until the frame comes that uses it up, which is sent when the write has completed. Until then the
// slot has no other use, whatever is skipped.
package remote

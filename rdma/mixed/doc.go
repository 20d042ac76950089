// Package mixed is the transport of a job on several machines: shared memory
// between the ranks of each machine, and TCP between machines.
//
//	t, err := mixed.Open(ctx, near, far)   // a rendezvous.Config and a tcp.Config
//
// A box lies in memory that the ranks of its machine map, as with shm. Where it
// has readers elsewhere, tcp relays it to them out of that same memory: an update
// is copied once by the rank that scatters it, wherever its readers are. What
// comes from elsewhere lands in replicas, and rings the same doorbell as the
// ranks of the machine do, so that a rank waits for all at one place.
//
// # Files
//
//	transport.go  the two halves, and what only one of them has
//	boxes.go      Publish and Subscribe
//	words.go      words of near and far ranks
//
// # Caveats
//
// Near and Share are about the ranks of one machine. What a rank does others of its
// machine see at once, those elsewhere later, in the order that docs/developers/wire.md
// gives.
//
// # How hosts work together
//
// Ranks whose MALT_STORE is host:port meet there (rdma/rendezvous/meeting):
// rank 0 listens, all prove the token, say which machine they are on and at
// which addresses they listen, and get the same table. From then on the store
// is needed for nothing. Ranks of one machine open shm among themselves, under
// a name from the table; to the others they connect by tcp; rdma/mixed makes
// one transport of the two.
//
//   - A box with readers on both sides lies in shared memory. tcp attaches
//     a relay for each far reader to it, as one more reader
//     (shm.PublishBeyond, tcp.Relay), so an update is still copied once,
//     however many readers it has and wherever they are. In a queue a relay
//     copies what the connection does not take at once, since a reader may
//     be excused while its update is on its way, and a slot in shared
//     memory cannot be exchanged as one of tcp's own can.
//   - Waking a goroutine takes longer than the way to the peer. So a small
//     update is written by the goroutine that commits it (quick.go), and a
//     rank that looks in vain again and again lands what has come (glance
//     in land.go): at either end one at a time has the turn, and the
//     goroutine does the rest.
//   - There is one doorbell per rank, that in shared memory: what lands
//     from elsewhere rings it too, so a wait has one place.
//   - Ranks have one number everywhere. rendezvous.Host knows which of them
//     are its members, and asks tcp for the state of the others.
//   - What orders one rank's words after its updates holds on each
//     connection, not across ranks: A may tell C what B said before C has
//     it from B. So no rank acts on what a rank says of another's update.
package mixed

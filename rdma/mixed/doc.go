// Package mixed is the transport of a job on several machines: one half connects the
// ranks of each machine by shared memory, such as shm, and the other one connects
// machines, such as remote.
//
//	t, err := mixed.Open(near, far)   // functions that open the halves
//
// A box lies in memory that the ranks of its machine map. For readers
// on other machines, the far half relays it out of that same memory: the rank that scatters
// copies an update once, wherever its readers are. Updates from other machines land
// in replicas, and ring the same doorbell as the ranks of the machine do, so that a
// rank waits for all of them at one place.
//
// # Files
//
//	transport.go  the two halves, and the calls that only one of them has
//	boxes.go      Publish and Subscribe
//	words.go      words of near and far ranks
//
// # Caveats
//
// Near and Share are about the ranks of one machine. The ranks of a machine see each
// other's actions at once, ranks elsewhere later, in the order that
// docs/developers/wire.md gives.
//
// # How hosts work together
//
// Ranks whose MALT_STORE is host:port meet there (rdma/rendezvous/meeting): rank 0
// listens, all ranks prove the token, report their machine and their addresses, and
// get the same table. After that the store is not needed. The ranks of one machine
// open shm among themselves, under a name from the table, and connect to the others
// by tcp. Package mixed makes one transport of the two.
//
//   - A box with near and far readers lies in shared memory. For each far reader, tcp
//     attaches a relay, as one more reader (Near.PublishBeyond, box.Relayer). So an
//     update is copied once, however many readers it has and wherever they are. In a
//     queue, a relay copies the part that the connection does not take at once: a
//     reader may be excused while its update is in flight, and a slot in shared
//     memory cannot be exchanged as one of tcp's own slots can.
//   - Waking a goroutine takes longer than sending to the peer. So the goroutine that
//     commits a small update also writes it (eager.go), and a rank that polls lands
//     incoming updates itself (inlineProgress in land.go). At either end, one goroutine at a
//     time has the turn, and the goroutine of the connection does the rest.
//   - Each rank has one doorbell, in shared memory. Updates from elsewhere ring it
//     too, so a rank waits at one place.
//   - Ranks have the same number everywhere. rendezvous.Host knows which of them are
//     its members, and asks tcp for the state of the others.
//   - The order of one rank's words and updates holds on each connection, not across
//     ranks: A may pass B's news to C before C has it from B. So no rank acts on
//     another rank's report of a third rank's update.
package mixed

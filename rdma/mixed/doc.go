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
package mixed

// Package rendezvous is how the ranks of one machine find each other, hand each
// other memory, and notice that one is gone.
//
//	h, err := rendezvous.Join(ctx, rendezvous.Config{Rank: r, Size: n, Store: "local:5eed", Token: secret})
//	err = h.Announce("weights", text, readers, control, slots)   // a sender
//	err = h.Fetch(ctx, 0, "weights", senders, use)               // a reader
//	err = h.Wait(ctx, 0, policy, step)                           // until a doorbell rings
//	err = h.State(peer)                                          // nil, rdma.ErrLeft, *rdma.PeerError
//	err = h.Close()
//
// Each rank listens on an abstract Unix socket named after the job and the rank:
// it is in no file system and gone with the process. Binding it is what makes a
// process that rank. Who connects must have the same user id, by the kernel's
// word, and know the job's token. The first of the ranks that are on the machine
// makes the control page, memory that all of them map (page.go), and the others
// ask it for that; memory of boxes is handed over in the same way, as descriptors
// (message.go).
//
// After that the sockets carry requests for memory only. Everything else is
// words in the page: who is alive, doorbells, claims of memory.
//
// # Caveats
//
// Death is what the kernel says of a process (deaths.go), or what a rank says of
// itself (Abort); never the end of a connection, since a forked child can hold
// one open. A stopped process is alive.
//
// Ranks must be able to see each other as processes and as sockets: the same
// network and process namespaces, as in one container.
//
// # Bell, sockets and memory
//
// Doorbell. A ring stores nothing where no rank sleeps: a rank that does not
// sleep looks at what it waits for, and a word that all ranks of a machine keep
// changing would cost a small sync more than all else. Where somebody sleeps,
// one compare-and-swap takes the bit back and raises the count; in two steps a
// sleeper could find the value that it has seen, made by the bit of another
// one. A ringer that dies between that and the wake leaves sleepers that no
// later ring would wake. A rank that notices a death therefore wakes all in any
// case (alarm in rdma/rendezvous/bell.go).
//
// Ranks meet at abstract Unix sockets, in no file system at all, and check each
// other's user and the job's token.
//
// Memory that several ranks are about to reserve is added up in the control
// page, so that they are not promised the same bytes. In newest mode a release
// rings no bell, since no rank waits for it.
package rendezvous

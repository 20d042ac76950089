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
package rendezvous

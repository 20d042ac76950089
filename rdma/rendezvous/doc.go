// Package rendezvous lets the ranks of one machine find each other, hand each
// other memory, and notice deaths.
//
//	h, err := rendezvous.Join(ctx, rendezvous.Config{Rank: r, Size: n, Store: "local:5eed", Token: secret})
//	err = h.Announce("weights", text, readers, control, slots)   // a sender
//	err = h.Fetch(ctx, 0, "weights", senders, use)               // a reader
//	err = h.Wait(ctx, 0, policy, step)                           // until a doorbell rings
//	err = h.State(peer)                                          // nil, rdma.ErrLeft, *rdma.PeerError
//	err = h.Close()
//
// Each rank listens on an abstract Unix socket named after the job and the rank.
// The socket is in no file system, and goes with the process. A process becomes a
// rank by binding its socket. A process that connects must have the same user id,
// as the kernel reports it, and know the job's token. The first rank on the machine
// makes the control page, memory that all of them map (page.go), and the others ask
// it for that page. Memory of boxes is handed over in the same way, as descriptors
// (message.go).
//
// After that, the sockets only carry requests for memory. Everything else is words
// in the page: live ranks, doorbells, claims of memory.
//
// # Caveats
//
// Only the kernel (deaths.go), or the rank itself (Abort), declares a process dead. Where
// the job goes on, a rank that waits does not wait for the kernel to free the memory of the
// dead one: all threads of that are ending, and none will store again (exits.go).
// The end of a connection does not, because a forked child can hold one open. A
// stopped process is alive. In a job on several hosts that goes on, State tells of a death
// once the hosts have decided on a view without the rank (ballots.go).
//
// Ranks must be able to see each other as processes and as sockets: in the same
// network and process namespaces, such as in one container.
//
// # Doorbells
//
// A ring stores nothing if no rank sleeps. A rank that does not sleep polls the
// words that it waits for, and a word that all ranks of a machine keep changing
// would cost a small sync more than all the rest. If a rank sleeps, one
// compare-and-swap clears its bit and raises the count. In two steps, a sleeper
// could find the count that it has already seen, together with the bit of another
// sleeper. If a ringer dies between the swap and the wake, no later ring would wake
// the sleepers. So a rank that notices a death wakes all of them in any case (alarm
// in rdma/rendezvous/bell.go). In newest mode a release rings no bell, because no
// rank waits for it.
//
// # Claims of memory
//
// The control page adds up the memory that ranks are about to reserve, so that no
// two of them count on the same bytes.
package rendezvous

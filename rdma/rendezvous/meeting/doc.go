// Package meeting lets the ranks of several hosts meet at the address of rank 0,
// MALT_STORE=host:port. There they prove the job's token to each other, report their
// addresses, and learn the addresses of all others.
//
//	table, listeners, err := meeting.Meet(ctx, meeting.Config{
//		Rank: r, Size: n, Store: "node-1:29500", Token: secret, Version: version,
//	})
//	near := table.Near()                   // ranks that share this rank's memory
//	tcp.Config{Listeners: listeners, Peers: table.Addresses, Job: table.Job, …}
//
// Rank 0 listens at the store. The others dial until the context ends: they retry
// names that cannot be resolved yet, hosts that do not answer yet and ports that do
// not listen yet. When the last rank has arrived, rank 0 sends the table to all of
// them and closes the store, which is not needed again. docs/developers/wire.md has
// the messages.
//
// # Guarantees
//
// Meet returns nil on all ranks, with the same job, generation and hosts, or an
// error on all ranks that are in the meeting. No rank returns before all have
// arrived. While it waits, it reports the missing ranks by Config.Report.
//
// A rank that is killed or gives up ends the meeting for all, with a
// *rdma.PeerError that names it; so does a silent host (Config.Unreachable). A
// stopped process is waited for. If ranks have different sizes, launchers that
// divide them differently, or different versions, the meeting ends with a
// rdma.ErrConfig. A second process with the number of a rank that is already
// there gets rdma.ErrRankTaken. A process that cannot prove the token has no
// effect; its claimed rank appears in Report, and in the error of a meeting that
// fails.
//
// A rank listens at its own addresses, each separately, and only at addresses that may
// be of use (interfaces.go); the first is the one from which it reached the store.
// After a successful Meet all listeners belong to the caller; otherwise they are
// closed.
//
// # Files
//
//	meet.go config.go table.go    the caller's view
//	chair.go admit.go talk.go     rank 0
//	guest.go                      the other ranks
//	message.go conn.go            messages and connections
//	store.go holder.go            rank 0's listening address
//	interfaces.go host.go         a rank's description of itself
//
// # Caveats
//
// Config.StoreFD is closed in any case, if it is a socket that listens.
//
// Ranks of one host (Table.Hosts) can be expected to share memory: they have the same
// machine, network and process namespaces, and user.
//
// # Design
//
//   - Addresses. NCCL chooses interfaces by name, those of the network of its root
//     first. Open MPI takes all interfaces that are not excluded, and guesses from
//     masks which reach each other. gloo resolves the host's own name, and gets
//     127.0.1.1 if /etc/hosts says so. A rank that has connected to rank 0 knows one
//     address that works, so that comes first. Its other addresses follow, without
//     loopback and bridges of containers unless there are no others. A rank that
//     connects tries them side by side (rdma/internal/dial), so that a wrong one
//     costs a quarter of a second. A rank never resolves its own host name.
//     MALT_INTERFACE combines the ways of NCCL and Open MPI: names, patterns,
//     networks, and exclusion.
//   - Each address has its own socket, never the wildcard, so a rank listens only at
//     the addresses that it has told the others. Once it is connected to all, it
//     closes the sockets at which no rank arrived. Both ends of a pair keep the
//     addresses of their first connection; otherwise a refusal would not prove that
//     the process is gone.
//   - Rank 0 decides. Until it has sent the table, any rank that dies, gives up, or
//     has different settings ends the meeting for all, and the messages name the rank
//     and its host. After that all have the same table. Ranks also report the ranks
//     that their malt run starts: if two disagree, one number will arrive twice,
//     perhaps only after the meeting.
//   - The handshake is the one that ranks use later (rdma/internal/handshake). The
//     messages after it are JSON: they are rare, short and bounded, and the standard
//     library reads them.
//   - Same host means that shared memory will work: the same boot, network and process
//     namespaces, and user. Each rank describes itself; names of hosts are not
//     compared. Before that, each rank tests by itself the operations that ranks use
//     on each other (rendezvous.Try). A rank for which they fail, as in a sandbox, is
//     its own host, and all others reach it by tcp. The table makes all ranks agree on
//     this.
package meeting

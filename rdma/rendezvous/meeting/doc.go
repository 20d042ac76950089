// Package meeting is where ranks of several hosts meet: at the address of rank 0,
// MALT_STORE=host:port. There they prove the job's token to each other, say where
// they can be reached, and learn the same of all others.
//
//	table, listeners, err := meeting.Meet(ctx, meeting.Config{
//		Rank: r, Size: n, Store: "node-1:29500", Token: secret, Version: version,
//	})
//	near := table.Near()                   // ranks that share this rank's memory
//	tcp.Config{Listeners: listeners, Peers: table.Addresses, Job: table.Job, …}
//
// Rank 0 listens at the store, the others dial until the context ends: names that
// cannot be resolved yet, hosts that do not answer yet and ports at which nobody
// listens yet are tried again. When the last rank has come rank 0 sends all of
// them the table, and closes the store: it is needed for nothing else. The
// messages are in docs/developers/wire.md.
//
// # What is promised
//
// Meet returns nil on all ranks, with the same job, generation and hosts, or an
// error on all ranks that are in the meeting; no rank returns before all are
// there. While it waits it tells each rank, by Config.Report, who is missing.
//
// A rank that is killed or gives up ends the meeting for all, with a
// *rdma.PeerError that names it; so does a host that is silent (Config.Unreachable). A
// process that is stopped is waited for. What cannot work, because the ranks were
// told different sizes, were divided among launchers in different ways, or have
// different versions, ends it with a *rdma.ConfigError, one that comes as a rank that is there already is sent away
// with rdma.ErrRankTaken. Whoever cannot prove the token has no effect; what it
// seems to have wanted stands in Report and in the error of a meeting that did
// not come about.
//
// A rank listens at its own addresses, each separately, and only at those that
// may be of use (interfaces.go): where it reached the store first. All listeners
// are the caller's when Meet has succeeded, and closed otherwise.
//
// # Files
//
//	meet.go config.go table.go    what a caller sees
//	chair.go admit.go talk.go     rank 0
//	guest.go                      the others
//	message.go conn.go            what goes between them
//	store.go holder.go            where rank 0 listens
//	interfaces.go host.go         what a rank says of itself
//
// # Caveats
//
// Config.StoreFD is closed in any case, if it is a socket that listens.
//
// Ranks of one host (Table.Hosts) can be expected to share memory: the same
// machine, network and process namespaces, and user.
//
// # How a meeting goes
//
//   - Which addresses. NCCL takes the interfaces by name, those of the
//     network of its root first; Open MPI all that are not excluded, and
//     guesses from masks which reach which; gloo resolves the host's own
//     name, and ends on 127.0.1.1 where /etc/hosts says so. A rank that has
//     connected with rank 0 knows an address that works, so that comes
//     first. Its others follow, without loopback and bridges of containers
//     unless there is nothing else, and a rank that connects tries them
//     side by side (rdma/internal/dial), so that one that leads nowhere
//     costs a quarter of a second. Its own host name is never resolved.
//     MALT_INTERFACE has what both others have: names, patterns, networks,
//     and exclusion.
//   - One socket per address, never the wildcard, so that what a rank has
//     told the others is all there is. Once it is connected with all, it
//     closes those at which no rank came; both ends of a pair stay with the
//     addresses of their first connection, or a refusal would not mean that
//     the process is gone.
//   - Rank 0 has the last word. Up to the table any rank that dies, gives
//     up, or was told something else ends the meeting for all; the messages
//     say who and where. After it all have the same table. Ranks also say
//     which others their malt run starts: where two disagree one number
//     will come twice, perhaps only when the meeting is over.
//   - The same handshake as between ranks later (rdma/internal/handshake).
//     What follows it is JSON: rare, short, bounded, and read by the
//     standard library.
//   - Same host means that shared memory will work: same boot, network and
//     process namespaces, user. It is said by each rank for itself; names
//     of hosts are not compared. Before that each has done by itself what
//     ranks do with each other (rendezvous.Try); a rank that may not, in a
//     sandbox, is a host of its own, and all reach it by tcp. So all agree,
//     by the table.
package meeting

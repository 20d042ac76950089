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
package meeting

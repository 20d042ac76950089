// Package membership has the hosts of a job decide who takes part, when a rank dies or a
// network is cut. Package vote has the rules. This package brings to them what a rank sees
// of the others, time, and frames.
//
//	m := membership.New(membership.Config{Job: job, Rank: rank, Unreachable: d}, page, net)
//	m.Start()
//	err = m.Land(peer, kind, arg, body) // each frame from another host
//	m.Wake()                            // something may have changed
//	v := m.View()                       // who takes part
//	answer := m.Confirm(ctx)            // this rank does
//	err = m.Out()                       // rdma.ErrExpelled once it does not
//	m.Close()
//
// # One goroutine
//
// Each rank has one. It looks 20 times a second, and when a frame lands or a rank of its host
// dies, at what the network says of other hosts and at the page of its own:
//
//	      is there a reason?       can the others decide? is it its turn?
//	look -------------------> wait ---------------------------------------> propose
//	 ^                                                                         |
//	 |    frames again every 50 ms, until the view is decided, another rank    |
//	 +---- has a higher ballot, or the suspects are others ------------------- +
//
// There are three reasons: a host of the view is dead or silent; a rank of its host has
// died; its host has accepted a view and does not learn that it was decided, because its
// proposer may be dead, or stopped. A death on another host is for its own ranks to notice.
// Where the hosts that are left could decide nothing, no rank proposes.
//
// # Turns
//
// Any rank may propose, and none knows which others do. So they wait for different times:
// vote.Turn for the host, unless only this host knows of a death, and 100 ms for each rank of
// the host that comes before. The wait begins again when the host promises a ballot to
// another proposer, and grows with each attempt, so that on a slow network the ranks do not
// beat each other for ever.
//
// # Which hosts know the view
//
// The proposer that has counted the votes tells all hosts of the view before, once. A frame
// can be lost with its connection, and the proposer can die. So a rank asks twice a second
// whether there is a later view, while it misses a host or its host has made a promise, and
// once more after that. A host that knows a later view answers with it.
//
// # Caveats
//
// A host of which all ranks are stopped is not silent, since its kernel answers. It does not
// vote either, and the others do not go on without it: a decision waits until one of its ranks
// runs again, or all have ended. Stuck names the host. It is final where most hosts have ended at once,
// and all others have said, half a second later, that they know of no later view: what those had decided nobody else knows.
//
// An idle rank wakes up 20 times a second. One look takes 1 µs with 2 hosts, and 15 µs with
// 128.
package membership

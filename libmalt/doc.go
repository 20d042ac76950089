// Package libmalt is the core: what is exchanged between ranks, and when it may
// be used.
//
// A World is one rank's membership in a job. A Segment is opaque bytes that a
// rank scatters to the receivers that a dataflow graph names; a Vector is a
// segment of numbers that folds what arrives. Consistency says how far ranks may
// drift apart; it is decided by package consistency and carried out here over
// the boxes of package rdma.
//
//	w, err := libmalt.Join(ctx, config)
//	v, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: n}}, "w", "graph=halton consistency=ssp:2")
//	for batch := range batches {
//		step(v.Bytes(), batch)
//		_, err = v.Sync(ctx, 1)
//	}
//	err = v.AllReduce(ctx, "mean")
//
// # Caveats
//
// A call whose context ends while it waits returns ErrTimeout and keeps its
// place: the same call goes on with it, Cancel gives it up, and any other call
// that waits on the same object is refused with ErrBusy until then.
//
// Collective calls (Barrier, AllReduce, AllGather, Broadcast, making and
// configuring objects) are numbered in the order in which a rank makes them and
// must be made by all ranks in the same order.
//
// The data of an Update is the sender's memory, valid from Begin to End.
//
// # Average in place
//
// In bsp on all every rank folds the same arrays to the same result, so sync
// goes another way (libmalt/inplace.go). Arrays of such vectors lie in memory
// that all ranks map. A rank that comes arrives, by a word of its own. When all
// have, one compare-and-swapped word decides for in place; each rank folds its
// part of all arrays and writes that into all of them, block by block. Then its
// word says that it has folded, and the sync returns when all have. No box is
// touched: 2·(N−1)/N of an array goes out of each rank and as much comes in,
// where boxes carry N−1. If a rank scatters by itself, gives up, has left, is
// in a collective call, or has another fold, the same word decides for the
// boxes, and all go through them, to the same bits.
//
// In-place average (libmalt/inplace.go). It is done in place only where all
// ranks arrive; otherwise one compare-and-swapped word decides for the boxes,
// for all alike. A rank that gives up after the decision folds its part first,
// and only a gather, which waits for the others' parts, can follow. A rank that
// enters a collective call while its sync keeps its place decides, or folds,
// before. A death raises PeerError; the arrays are part averages, part not. The
// progress words are there, and the exploration holds them against the arrays
// at every step; no code repairs them yet.
//
// # Between hosts
//
// Where the ranks are on several hosts, the order in which they add up is that
// of the hosts (libmalt/subtotal.go): the ranks of each host first, then the
// hosts, so that a host can send what its ranks have together. A mean is
// divided once, at the end; with weights that differ within a host, the host's
// mean is rounded once more. Which ranks share memory they tell each other at
// the start.
//
// Averages of large vectors (exchanging.go) are divided among the hosts, in the
// same order. Each host owns a share of the array, each of its ranks a piece of
// that; the other hosts send what their ranks have of it, added up in shared
// memory, to the owner, which adds up what comes and sends the sum back
// (libmalt/exchange). Between hosts pass 2·(H−1)/H of the array per host, over
// connections of all its ranks. There is no compare-and-swap between hosts, so
// nothing is decided beforehand. Each rank begins, keeps its array as it is
// until the result is whole, and can change to boxes: it puts its array into
// its box, as a scatter does, and all ranks that see it follow. That all take
// the same way follows from two rules. No rank has the whole result before
// every rank has finished, that is, has sent all that others need of it, since
// each owns a piece. And only a rank that has not finished may change to boxes
// of its own accord. So a rank that is cancelled, goes into a collective call,
// closes the vector, or waits for one that has gone, changes, or has finished
// and is not missed. What a rank keeps after a timeout is waited for, and a
// death fails all, as everywhere.
//
// A small array goes through boxes, in one hop where an exchange takes two, or
// three where ranks share hosts (Plan.Pays reckons with 100 µs a hop, 10 µs a
// message and 1 ns a byte). Recursive doubling, which saves messages there,
// would add up in another order on each rank. So would a ring, which takes
// 2(H−1) hops in place of two. It has one connection in each direction at a
// time where an exchange has one with each host; these share a cable equally
// with CUBIC, not with BBR. Holding back a rank that is ahead of the sums that
// it has (sixteen pieces, two ahead) mends that, 217 ms in place of 234 for 16
// MB at 1 Gbit/s; with CUBIC it brings nothing, and where nothing limits the
// rate it costs 4 to 10 %. So it is not done, and MALT_CONGESTION chooses.
//
// # Sparse vectors
//
// A sparse vector sends rows in place of all (libmalt/sparse*.go,
// libmalt/spvec), in slots that could hold all, and take as much memory as was
// written into them. What a message is, whole or rows, stands in the *kind* of
// its slot's header.
//
//   - sparse=model promises that each row reaches each reader once in each
//     of its values, whatever was overwritten. The readers publish what
//     they have *folded* last, in the ack word that each box has; the
//     sender keeps in a ledger which message each row was new in. A message
//     holds the rows that are newer than what its slowest reader has
//     folded, with their ages in messages; a reader skips those that it has
//     folded from another message. So one message serves all readers, and
//     an update that ssp drops for its age is not acknowledged. In
//     notify-ack, where nothing is overwritten, it is the message that was
//     meant for a reader last that counts.
//   - Which rows are new is found by comparing with a copy of what was
//     sent, or named by the caller. A fold changes rows like the loop does,
//     so without rows= its changes are passed on along the graph.
//   - In bsp a receiver that is still folding the last message when the
//     next is written gets its rows in both, and skips them in the second:
//     what a scatter returns is an upper bound there.
//   - sparse=gradient folds what whole vectors would give: a row that is
//     missing is zero, and messages that are mostly rows go as whole
//     vectors.
//
// # Words of the modes
//
// bsp adds one word per rank that says which step it has reached, and two
// newest slots by the parity of the clock; notify-ack uses the slots as a ring
// that moves on as readers acknowledge.
//
// # Collective calls
//
// An allreduce of a vector (libmalt/reducing.go) is done in place as well,
// where the vector's memory is shared: no message is sent. Each rank shows the
// header that it would send, its *card*, behind its array, and arrives by a
// word; words with the number of the call decide and count as those of a sync
// do. Where a rank has gone, has given the call up, or makes another one, the
// same word decides for messages, by which all hear of it. A call that was
// given up too late is folded first, and the rank's next call on the vector
// waits until the others have folded. After a timeout or a death parts of the
// array may be combined already.
//
// Collectives travel as a stream of 256 KB parts through one queue per rank,
// each with the number of the call, what the call is, and where the rank is
// with each vector. So ranks that make different calls hear of it, with both
// named, and levelling knows exactly what had been sent.
//
// A barrier keeps what is unseen, so that scatter, barrier, gather works. Only
// in notify-ack does it count as seen, since senders do not wait for the acks
// of a rank that is in a collective call; such a rank uses no queue until the
// call is over, and a gather that could only wait for ever raises an error.
//
// A rank that gives a call up (timeout, Ctrl-C, an error of its own) tells the
// others why; all name the rank at which it began, and the next call finds them
// in step.
//
// A rank that is back after a collective call that it gave up must not be
// missed by one rank while another folds what it sends then: in notify-ack the
// two and the rank would in the end wait for each other. So it sends when all
// its readers have heard that it is back, a gather takes and misses what is
// there at one moment, and no rank begins a collective call that it knows was
// given up: what was sent before such a call is not the same to all.
//
// # Deaths
//
// Which clock counts of a dead rank. It is read after the death is known, not
// before, so that survivors agree on who took part in a step. A wait fails at
// any death, also of a rank that it does not wait for itself: those it waits
// for may be stuck on the dead one.
package libmalt

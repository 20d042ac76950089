// Package libmalt is the core: it exchanges values between ranks, and says when
// a rank may use them.
//
// A World is one rank's membership in a job. A Segment is opaque bytes that a
// rank scatters to the receivers of a graph; a Vector is a segment of numbers
// that folds the updates it receives. Consistency says how far ranks may drift
// apart: package consistency decides, and this package carries it out over the
// boxes of package rdma.
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
// place: the same call continues it, Cancel gives it up, and until then any
// other call that waits on the same object gets ErrBusy.
//
// Each rank numbers the collective calls (Barrier, AllReduce, AllGather,
// Broadcast, making and configuring objects) in the order in which it makes
// them. All ranks must make them in the same order.
//
// The data of an Update is the sender's memory, valid from Begin to End.
//
// # Average in place
//
// In bsp on all, every rank folds the same arrays to the same result, so a sync
// takes a shorter path (libmalt/inplace.go). The arrays of such vectors lie in
// memory that all ranks map. Each rank reports its arrival in its own word. When
// all have arrived, a compare-and-swap of one word decides for in place. Each
// rank then folds its part of all arrays and writes the result into all of them,
// block by block. Its word then says that it has folded, and the sync returns
// when all have. No box is used: each rank sends 2·(N−1)/N of an array and
// receives as much, where boxes carry N−1 arrays. If a rank scatters by itself,
// gives up, has left, is in a collective call, or has another fold, the same
// word decides for the boxes. All ranks then use the boxes, with the same bits.
//
// A rank that gives up after a decision for in place folds its part first, and
// then only a gather can follow, which waits for the others' parts. A rank that
// enters a collective call while its sync keeps its place first decides, or
// folds. A death raises PeerError, and leaves parts of the arrays averaged. The
// progress words record which parts, and the exploration compares them with the
// arrays at every step; no code repairs the arrays yet.
//
// # Between hosts
//
// If the ranks are on several hosts, sums are taken host by host
// (libmalt/subtotal.go): first over the ranks of each host, then over the hosts,
// so that a host can send the sum of its ranks. A mean is divided once, at the
// end; with weights that differ within a host, the mean of the host is rounded
// once more. At the start, ranks tell each other which of them share memory.
//
// Averages of large vectors (exchanging.go) are divided among the hosts, in the
// same order. Each host owns a share of the array, and each of its ranks a piece
// of that share. The other hosts add up the values of their ranks in shared
// memory and send this sum to the owner. The owner adds up the sums of all hosts
// and sends the result back (libmalt/exchange). Each host sends 2·(H−1)/H of the
// array, over connections of all its ranks.
//
// There is no compare-and-swap between hosts, so nothing is decided beforehand.
// Each rank begins, keeps its array unchanged until the result is whole, and can
// change to boxes: it puts its array into its box, as a scatter does, and all
// ranks that see this follow. Two rules ensure that all ranks take the same path.
// First, no rank has the whole result before every rank has finished, that is,
// has sent everything that the others need of it; this holds because each rank
// owns a piece. Second, only a rank that has not finished may change to boxes of
// its own accord. So a rank that is cancelled, enters a collective call, closes
// the vector, or waits for a rank that has gone, either changes to boxes, or has
// finished and is not needed. After a timeout, other ranks wait for a rank that
// keeps its place. A death fails all ranks, as everywhere.
//
// A small array goes through boxes. This takes one hop, where an exchange takes
// two, or three if ranks share hosts (Plan.Pays assumes 100 µs a hop, 10 µs a
// message and 1 ns a byte). Recursive doubling would save messages there, but
// adds up in another order on each rank. So does a ring, which takes 2(H−1) hops
// instead of two. A ring has one connection in each direction at a time; an
// exchange has one with each host. These share a cable equally with CUBIC, but
// not with BBR. Holding back a rank that is ahead of its sums (sixteen pieces,
// two ahead) corrects this: 217 ms instead of 234 for 16 MB at 1 Gbit/s. With
// CUBIC it gains nothing, and without a limit of the rate it costs 4 to 10 %. So
// MALT does not hold ranks back; MALT_CONGESTION chooses the congestion control.
//
// # Sparse vectors
//
// A sparse vector sends some of its rows (libmalt/sparse*.go, libmalt/spvec). Its
// slots could hold all rows, and take as much memory as was written into them. The
// *kind* in the header of a slot says whether a message is the whole vector or
// rows.
//
//   - sparse=model promises that each reader gets each value of a row once, even
//     if updates are overwritten. Each reader publishes the last message that it
//     has *folded*, in the ack word of the box. The sender keeps a ledger of the
//     message in which each row was new. A message holds the rows that are newer
//     than the last message that its slowest reader has folded, with their ages
//     in messages. A reader skips the rows that it has folded from another
//     message. So one message serves all readers, and a reader does not
//     acknowledge an update that ssp drops for its age. In notify-ack, where
//     nothing is overwritten, the last message that was meant for a reader
//     counts instead.
//   - The sender finds new rows by comparing with a copy of the values that it
//     sent, or the caller names them. A fold changes rows as the loop does, so
//     without rows= its changes are passed on along the graph.
//   - In bsp, a receiver that is still folding the last message when the next is
//     written gets its rows in both, and skips them in the second. There the
//     result of a scatter is an upper bound.
//   - sparse=gradient has the same result as whole vectors: a missing row is zero,
//     and messages with most of the rows go as whole vectors.
//
// # Words of the modes
//
// bsp adds one word per rank with the step that it has reached, and has two
// newest slots, by the parity of the clock. notify-ack uses the slots as a ring
// that moves on as readers acknowledge.
//
// # Collective calls
//
// An allreduce of a vector (libmalt/reducing.go) is also done in place, if the
// ranks share the vector's memory: no message is sent. Each rank shows its *card*,
// the header that a message would have, after its array, and reports its arrival
// in a word. Words with the number of the call decide and count as those of a sync
// do. If a rank has gone, has given up the call, or makes another call, the same
// word decides for messages, by which all ranks learn of it. A call that was given
// up too late is folded first, and the rank's next call on the vector waits until
// the others have folded. After a timeout or a death, parts of the array may be
// combined already.
//
// Other collective calls send a stream of 256 KB parts through one queue per rank.
// Each part has the number of the call, the kind of the call, and the clocks of the
// vectors that the rank has used since its last part. So ranks that make different
// calls learn of it, and the error names both calls. Levelling knows exactly what had
// been sent, and a call costs the same however many vectors there are.
//
// A barrier keeps unseen updates, so that scatter, barrier, gather works. Only in
// notify-ack do they count as seen, because senders do not wait for the acks of a
// rank that is in a collective call. Such a rank uses no queue until the call is
// over, and a gather that could only wait for ever raises an error.
//
// A rank that gives up a call (timeout, Ctrl-C, its own error) tells the others the
// reason. All errors name the rank that gave up first, and the next call finds the
// ranks in step.
//
// A rank may return from a collective call that it gave up. Then one rank must not
// skip its updates while another folds them: in notify-ack, these two and the rank
// would in the end wait for each other. So the rank sends only when all its readers
// have heard that it is back; a gather decides at one moment which updates it folds
// and which ranks it does without; and no rank begins a collective call that it
// knows was given up, because the updates sent before such a call are not the same
// for all ranks.
//
// # Deaths
//
// Survivors must agree on which ranks took part in a step. So the clock of a dead
// rank is read after its death is known, not before. A wait fails at any death, even
// of a rank that it does not wait for: the ranks that it waits for may be stuck on
// the dead one.
package libmalt

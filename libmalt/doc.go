// Package libmalt is the core: it exchanges values between ranks, and says when
// a rank may use them.
//
// A World is one rank's membership in a job. A Segment is opaque bytes that a
// rank scatters to the receivers of a graph; a Vector is a segment of numbers
// that folds the updates it receives. Consistency says how far ranks may drift
// apart: package rule decides, and this package carries it out over the
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
// A call whose context ends while it waits returns ErrTimeout and is given up. What it
// has scattered stays scattered; after a sync, Gather folds what comes late. Ranks that
// need this one in a collective call that it gave up get ErrLeft.
//
// Each rank numbers the collective calls (Barrier, AllReduce, AllGather,
// Broadcast, making and configuring objects) in the order in which it makes
// them. All ranks must make them in the same order.
//
// The data of an Update is the sender's memory, valid from Begin to End.
//
// # Routes
//
// In bsp on all, a sync has the same result on all ranks, which a route can produce without
// boxes (libmalt/route.go has the table). If all ranks share memory, they average in place
// (package libmalt/route/shared). Between hosts they exchange shares of large arrays
// (package libmalt/route/hosts). In any sync a route may fall back on the boxes, on all
// ranks and with the same bits. After a death, parts of the array may already be averaged.
//
// # Between hosts
//
// If the ranks are on several hosts, sums are taken host by host (reduce.Subtotal):
// first over the ranks of each host, then over the hosts, so that a host can send the
// sum of its ranks. A mean is divided once, at the end; with weights that differ within
// a host, the mean of the host is rounded once more. At the start, ranks tell each other
// which of them share memory.
//
// # Words of the modes
//
// bsp adds one word per rank with the step that it has reached, and keeps
// the two newest updates. notify-ack uses the slots as a ring
// that moves on as readers acknowledge.
//
// # Deaths
//
// Survivors must agree on which ranks took part in a step. So the clock of a dead
// rank is read after its death is known, not before. A wait fails at any death, even
// of a rank that it does not wait for: the ranks that it waits for may be stuck on
// the dead one.
package libmalt

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
package libmalt

// Package rdma defines how bytes reach another rank's memory. It has the interfaces
// of the transport layer and the errors that cross it. Package box is the data
// structure behind them, and each transport is a folder.
//
// A sender publishes a box, readers subscribe to it by name:
//
//	out, err := t.Publish(ctx, "weights", rdma.Spec{Bytes: 4096}, readers)
//	b, err := out.Begin()            // a free slot, in memory the readers map
//	n := copy(b, payload)
//	err = out.Commit(n, rdma.Stamp{Clock: 1, Weight: 1}, nil)
//
//	in, err := t.Subscribe(ctx, "weights", rdma.Spec{Bytes: 4096}, []int{sender})
//	u, ok, err := in[0].Next()       // the newest, without a copy
//	in[0].Release(u.Seq)
//
// # Caveats
//
// Update.Data is the sender's slot itself. It must not be written (the mapping
// is read-only: a write faults) and must not be used after Release, or after the
// next Next that returns ok.
//
// A stopped peer (SIGSTOP) is slow, not dead. Only the kernel, or the peer itself,
// can declare it dead with a *PeerError.
//
// # Shared memory
//
// Near lists the ranks whose memory a rank can map, and Share is memory that these
// ranks share.
package rdma

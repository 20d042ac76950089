// Package rdma says how bytes land in another rank's memory. It holds the only
// interfaces of the transport layer and the errors that cross it; the data
// structure behind them is package box, and each transport is a folder of its
// own.
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
// A stopped peer (SIGSTOP) is slow, not dead; only the kernel's word, or the
// peer's own, makes a *PeerError.
//
// # Whose memory
//
// Near tells whose memory a rank can map, and Share is memory of those.
package rdma

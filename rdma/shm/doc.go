// Package shm is the transport between processes of one machine: boxes in
// memory that the sender and its readers map.
//
//	t, err := shm.Open(ctx, rendezvous.Config{Rank: r, Size: n, Store: "local:5eed", Token: secret})
//
// A box is two pieces of memory without a name (memfd). All ends map the control
// block for writing. The slots are sealed once the sender has mapped them, so that
// readers can map them for reading only. The sockets of package rendezvous carry
// the descriptors, which are closed when every reader has mapped them. So a scatter
// is one copy into the sender's slots, and a gather reads these slots directly.
// However a rank ends, the kernel frees the memory that no process maps any more.
//
// # Caveats
//
// Update.Data and the result of Begin must not be used after the box or the
// transport is closed: the memory is unmapped. Calls, in contrast, may run during a
// Close of the transport, and return rdma.ErrClosed.
//
// A slot is populated when it is first used. shm checks beforehand that the memory
// is available, because beyond the limits the kernel kills the process instead of
// returning an error. A forked child has none of the mappings.
package shm

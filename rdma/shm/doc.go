// Package shm is the transport between processes of one machine: boxes in
// memory that sender and readers map.
//
//	t, err := shm.Open(ctx, rendezvous.Config{Rank: r, Size: n, Store: "local:5eed", Token: secret})
//
// A box is two pieces of memory without a name (memfd): the control block, which
// all its ends map for writing, and the slots, which are sealed once the sender
// has mapped them, so that readers can map them for reading only. The
// descriptors go over the sockets of package rendezvous and are closed when
// every reader has them mapped. So a scatter is one copy into the own slots, a
// gather reads the senders' slots where they are, and whatever way a rank ends
// the kernel frees what nobody maps any more.
//
// # Caveats
//
// Update.Data and what Begin returned must not be touched after the box or the
// transport is closed: the memory is unmapped. Calls, in contrast, are safe
// beside a Close of the transport and give rdma.ErrClosed.
//
// A slot is populated when it is first used, and it is looked up before whether
// that memory is there, because past the limits the kernel does not fail but
// kills. A forked child has none of the mappings.
package shm

// Package shm is the transport between processes of one machine: boxes in
// memory that the sender and its readers map.
//
//	t, err := shm.Open(ctx, rendezvous.Config{Rank: r, Size: n, Store: "local:5eed", Token: secret})
//
// A box is a piece of memory without a name (memfd). All ends map its control block for
// writing. Slots are mapped when they are used, by readers for reading only. The sockets of
// package rendezvous carry the descriptor, which is closed when every reader has mapped the
// control block: further mappings are made from that one. So a scatter is one copy into the
// sender's slots, and a gather reads these slots directly.
//
// The box of a Share's name lies behind its block and words while another rank has yet to
// join it. So what a rank has of another one for an object is one mapping: 18 for a vector
// among 16 ranks, of which 3 are its own memory.
//
// However a rank ends, the kernel frees the memory that no process maps any more.
//
// # Caveats
//
// Update.Data and the result of Begin must not be used after the box or the
// transport is closed: the memory is unmapped. Calls, in contrast, may run during a
// Close of the transport, and return rdma.ErrClosed.
//
// The slots that a box behind a Share has used are freed with the Share.
//
// A slot is populated when it is first used. shm checks beforehand that the memory
// is available, because beyond the limits the kernel kills the process instead of
// returning an error. A forked child has none of the mappings.
package shm

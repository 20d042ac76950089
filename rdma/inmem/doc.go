// Package inmem is the transport between ranks that live in one process: for
// tests under the race detector and in virtual time, for tools, and for a job of
// one rank.
//
//	ranks := inmem.New(3)
//	out, err := ranks[0].Publish(ctx, "w", rdma.Spec{Bytes: 4096}, []int{1, 2})
//	in, err := ranks[1].Subscribe(ctx, "w", rdma.Spec{Bytes: 4096}, []int{0})
//
// # Caveats
//
// Boxes lie on the Go heap, where the race detector sees every access: under it
// a test proves the ordering of the box's protocol, not only its results. Slots
// are made when they are first used.
//
// Waiting is that of package bell: in a testing/synctest bubble a rank that
// waits is durably blocked.
//
// Update.Data is the sender's memory and is not write-protected here: whoever
// writes it, other than the sender, breaks the other readers.
package inmem

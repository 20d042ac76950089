// Package inmem is a transport between ranks of one process, for tests: under the
// race detector, in virtual time, and wherever processes are not the matter.
//
//	ranks := inmem.New(3)
//	out, err := ranks[0].Publish(ctx, "w", rdma.Spec{Bytes: 4096}, []int{1, 2})
//	in, err := ranks[1].Subscribe(ctx, "w", rdma.Spec{Bytes: 4096}, []int{0})
//
// # Caveats
//
// Boxes lie on the Go heap, where the race detector sees every access. Under it, a
// test checks the ordering of the box's protocol, not only its results. Slots are
// made when they are first used.
//
// Ranks wait on package bell: in a testing/synctest bubble, a waiting rank is durably
// blocked.
//
// Update.Data is the sender's memory, and is not write-protected here. A reader that
// writes to it breaks the other readers.
package inmem

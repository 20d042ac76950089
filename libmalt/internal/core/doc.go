// Package core is what an object of libmalt and the ways in which it travels know of
// each other.
//
// A Job is this rank's part in a job. It knows its objects as Members: a number, a name,
// memory, a Gate, a clock and counts; a Body says how each travels. Collective calls go
// through one stream of messages, and say where each rank is with each object.
//
// A Route carries the syncs of one vector without boxes. It sees the vector as an Object
// and a collective call as a Call, and nothing else of libmalt, so that tests can run it
// over others. libmalt does the rest: clock, statistics, marks, timeouts and errors are
// not a route's concern.
//
// Every call that may wait is a Stepper. The Gate of its object, or of the job, lets in one
// at a time, and runs it until it is done, a rank has died or its time is up.
// Marks tell the other ranks meanwhile where this one is; Failures, what to tell them of
// this rank when it leaves.
//
// # Collective calls
//
// An allreduce of a vector also takes its route: in memory that all ranks share, it sends
// no message. After a timeout or a death, parts of the array may be combined already.
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
// would end up waiting for each other. So the rank sends only when all its readers
// have heard that it is back; a gather decides at one moment which updates it folds
// and which ranks it does without; and no rank begins a collective call that it
// knows was given up, because the updates sent before such a call are not the same
// for all ranks.
package core

// Package shared is the route of vectors whose arrays lie in memory that all ranks map:
// they are averaged in place.
//
// If all ranks send to all in lock-step, every rank folds the same arrays to the same
// result. So each rank folds one span of all arrays and writes the result into all of
// them, block by block: a reduce-scatter and an all-gather in one pass. No box is used.
// Each array is read once and written once, and each rank sends 2·(N−1)/N of an array
// and receives as much, where boxes carry N−1 arrays.
//
// # A sync
//
// The steps of rank me at clock e:
//
//	op, weight := …; step = 2e-1             I have arrived, and keep off my array
//	wait until decision >= 2e, or all have step >= 2e-1
//	all have arrived, with the same op:      CAS decision: pending -> 2e, committed
//	else:                                    CAS decision: pending -> 2e+1, aborted
//	committed: fold my span of all arrays into each of them
//	           step = 2e; wait until all have step >= 2e
//	aborted:   scatter and gather through the boxes, with the same bits
//
// The rank that decides rings the others, when it has folded its span, and so does the last
// that has folded: a rank that sleeps is woken for what it waits for. Of long arrays the rank that
// decides rings before, too: a rank that sleeps would begin to fold only when that one is done.
//
// decision is one word of the job, pending at e while it is below 2e. A rank that does
// not take part aborts: it scatters by itself, gives up, has another fold, or sees that
// another rank is in a collective call, has left or is dead. After a commit no rank is
// past clock e before all have folded, and so have read the decision. So if the word has
// a later clock, e was aborted.
//
// Of small arrays the span of the rank that decides is all, and the others only wait for its
// step: each has to run but once. Decision says so, since what is small is for that rank to know:
// larger arrays are, where ranks take turns on cores. So a rank may be past clock e before all have
// read the decision. Before such a rank aborts a later sync, it raises a step of 2e-1 to 2e: a rank
// whose own step is 2e knows that e was committed, and folded.
//
// A rank that gives up after a commit folds its span first. Its sync counts as a
// scatter, after which only a gather can follow, and that waits for the other ranks'
// spans: until then they may be written into the array.
//
// A rank that is stopped holds up the others, as in all lock-step. If a rank dies, every
// wait fails with its death, unless the job goes on without it.
//
// # Deaths
//
// Where the job goes on, the decision waits for the ranks that live. A rank that had arrived
// when it died counts: its step says so, and is final once its death is known. So all
// derive from the words, after the decision, whose arrays are folded (pass.go). The spans
// are cut among those ranks, and another rank folds what a dead one has not (mend.go). No
// memory is shared again, no array moves, and a dead rank's array stays mapped, as do the
// words of the lowest rank, which decide. TestSmallerView and TestExploreMend show it.
//
// wordDone says which blocks all arrays have, and the exploration compares it with them at
// every step. A sum pays for a block of which some arrays have the result: it is folded
// into a spare first. The others pay nothing, as long as no rank dies.
//
// # An allreduce
//
// An allreduce is a collective call without messages. Each rank shows its card, which is
// the header that a message would have, and arrives by a word. The steps of rank me in
// call n:
//
//	card = my header; called = n             I have arrived, and keep off my array
//	wait until meeting >= 2n, or all have called >= n, or one will not
//	all have called = n, with like cards:    CAS meeting: pending -> 2n, committed
//	else:                                    CAS meeting: pending -> 2n+1, aborted
//	committed: read the cards; fold my span of all arrays into each of them
//	           reduced = n; wait until all have reduced >= n
//	aborted:   header and data by messages, as any other allreduce
//
// meeting is one word of the job, pending at n while it is below 2n. A rank aborts if it
// gives the call up, or finds that another rank has gone or sends messages. By messages
// all ranks learn which rank gave the call up, or makes another call: that one says so
// beforehand (World.note), and its called is greater than n later. A rank that gives up
// after a commit folds first, and the others do not notice. Its array may be written,
// and its card read, until they have folded too, so its next call on the vector waits
// for that.
//
// The numbers are those of the collective calls, and the words are not those of a sync:
// each is decided by itself. A rank that goes on to another call, of either kind, has
// folded; so once all have arrived, no rank writes for an earlier call.
package shared

// Package hosts is the route of large vectors whose ranks are on several hosts.
//
// If all ranks send to all in lock-step, no rank has to send N−1 copies. The array is
// divided among the hosts. Each host owns a share of it, and each of its ranks a piece
// of that share. The other hosts add up the values of their ranks in memory that these
// share, and send this sum to the owner. The owner adds up the sums of all hosts, which
// is a reduce-scatter, and sends the result back, which is an all-gather (package
// exchange). Each host sends 2·(H−1)/H of the array, over connections of all its ranks.
// The sums are taken as those of a gather are (reduce.Subtotal), so the boxes give the
// same bits, and a rank may take either way. What all ranks must agree on is whose
// values are in the result.
//
// # A sync
//
// The steps of rank me at clock e:
//
//	op, weight := …; step = 2e-1             I have arrived, and keep off my array
//	wait until all of my host have step >= 2e-1, with the same op
//	exchange e: send the sum of my host; add up my share; send the result
//	what my host needs of the result into my scratch; step = 2e
//	lowest of a host of several: wait until all there have step >= 2e; done = e
//	wait until all there have step >= 2e, done >= e of each such host
//	copy the scratch of all there into my array
//
// Each word has one writer, so no compare-and-swap decides beforehand. Each rank begins,
// keeps its array unchanged until the result is whole, and can abort: it commits its array
// to its box, as a scatter does, at clock e. All ranks that see this do the same, and fold
// the boxes.
//
// A rank is finished when no rank waits for it any longer: its exchange has sent
// everything, and on a host of several ranks its step is 2e, or, of the lowest, its done
// is e. Only a rank that has not finished may abort of its own accord: its time is up, or it
// waits for a rank that has gone or has scattered by itself.
//
// So all ranks do the same. No rank has the whole result before all have finished, since
// each owns a piece of it; and a rank that has finished aborts only after another. Either
// some rank aborts before it has finished, and no rank gets the result, or no rank aborts.
//
// A rank that has finished and then gives up also puts its array into its box, marked as
// no decision, so that ranks that follow another's abort can still read it. Otherwise
// the result still comes, and its gather takes it.
//
// A rank that waits for one that is away, has left or scatters by itself has not
// finished: it waits for an arrival or for parts, and a rank sends these before anything
// that it does afterwards. For results, steps and marks, a rank that has finished waits
// until they come, or until another aborts: all had arrived. Each rank finishes, aborts,
// is dead, which ends all waits, or is slow, and then the others wait for it as in all
// lock-step. A stopped rank holds the others up. A rank that dies fails them, and their
// arrays are as they were.
//
// Others do not wait for a rank that is in a collective call: of another thread, or after it has
// given the sync up. They may abort then, and come so far that their boxes say so no longer. So a rank
// whose clock a collective call has levelled with theirs leaves the sync, and goes on through boxes.
//
// # Deaths
//
// In a job that goes on, a rank that learns of a death takes no further step of its sync until
// it has settled (package core). A survivor that has the result gives it to the others: all had
// finished, so the ranks that are left out count. The result lies in its exchange and in the
// scratch of its host until a sum of the next sync comes, and before that every rank has begun
// the next sync. If no survivor has the result, all abort. From then on all syncs go through
// boxes: a new plan among the survivors would need new boxes, which only a collective call can
// make.
//
// Where no rank dies, this costs a look at the view in each step.
//
// # Fewer bytes
//
// With wire=, values travel in fewer bytes (package narrow). Each rank keeps the last result of what
// it handles: what is sent is how far values are from it, and what that loses is kept for the next
// exchange. The result is rounded once, by the owner, so all have the same bits. All differ from the same
// result, that of the exchange before, which each part names. If a sync is given up, parts name different
// ones: all give that exchange up too, send their arrays through boxes, and begin from zeros.
// Through boxes nothing is rounded. So a rank that leaves a sync, since a collective call has levelled its
// clock, may have the exact result where others have the rounded one, until its next sync.
//
// # Small arrays
//
// A small array goes through boxes. This takes one hop, where an exchange takes
// two, or three if ranks share hosts (Plan.Pays assumes 100 µs a hop, 10 µs a
// message and 1 ns a byte). Recursive doubling would save messages there, but
// adds up in another order on each rank. So does a ring, which takes 2(H−1) hops
// instead of two. A ring has one connection in each direction at a time; an
// exchange has one with each host. These share a cable equally with CUBIC, but
// not with BBR. Holding back a rank that is ahead of its sums (sixteen pieces,
// two ahead) corrects this: 217 ms instead of 234 for 16 MB at 1 Gbit/s. With
// CUBIC it gains nothing, and without a limit of the rate it costs 4 to 10 %. So
// MALT does not hold ranks back; MALT_CONGESTION chooses the congestion control.
package hosts

// Package butterfly is the engine of vectors with a fold of changes on the graph butterfly:
// SSP allreduce. The array of each rank is
//
//	start + Σ of the totals of all ranks + what its loop has changed since its last scatter
//
// where a rank's total is the sum of what it has changed. Ranks exchange them in stages
// (graphs.Stage). In each stage a rank sends to the others of its group the sum of its own
// total and of what it holds of the stages before: that is, of the ranks for which it stands.
// The groups behind different stages have no rank in common, so no change counts twice. A newer
// sum holds the older one, so that overwriting loses nothing, and of each sender the newest that
// has come stays pinned until the next.
//
// With each sum go the clocks of the ranks in it: up to where their changes are there. So a
// gather waits for the ranks whose changes are missing, however far they have to come, and its error
// names these. The printed algorithm has the clock of the sender alone: then data may be as old
// as the slack times the number of stages. Beside each clock is the number of scatters: a gather tells by it from
// how many ranks it has brought something new, since a collective call lifts clocks, too. And there is the
// last collective call before which the rank has changed no more: it is waited for until that has come.
//
// The calls of the rank pass on what has come, and between them the goroutine of package
// progress does. A rank that closes the vector leaves its total with the others, at a clock that
// nobody waits for, and goes on passing on what ranks for which it stands still send: until
// they have closed it, too, or it leaves the job, which waits for that as long as its timeout. The sums
// of the others then have, instead of a clock, that changes of a rank come no more, and which rank has left:
// gathers fail.
//
// # Files
//
// core.go decides, as a value without data, transport and time. engine.go moves the bytes.
//
// # Caveats
//
// Which changes of another rank are there, and in which order sums were rounded, differs
// from rank to rank until an allreduce. A job that goes on when ranks die cannot have one.
package butterfly

// Package shards is the engine of vectors with a fold of changes on the graph shards: sharded SSP,
// and with one shard a parameter server. The vector has K equal parts, and each of the first K
// ranks keeps one: the values and the changes of all ranks, added up. The others are its workers,
// and each rank is that of the other parts.
//
// A worker pushes to each keeper what it has changed in its part; the keeper adds it to the sum,
// and publishes that, with the clocks up to which the changes of each rank are in it. A part of an
// array is
//
//	the newest sum of its keeper + the last push, while it is not in there
//	+ what has not been pushed + what the loop has changed since its last scatter
//
// One push is on its way at a time: the worker makes the next when it finds the last one in the
// sum. So nothing is overwritten, nobody waits for room, and own changes are there always and once.
// Changes in between go with the next push. A worker that has some tells the keeper, which then
// publishes the sum. Otherwise it publishes once the slowest rank has pushed, since nobody can be
// waiting before. A rank that is in a collective call is not waited for, but what it had pushed before
// has to be in the sum: so beside each clock is the last call before which all is there.
//
// On shards:K/D the sum of a part travels through a tree: the keeper publishes it for D workers,
// and each worker that has others below it publishes its view, as it is, whenever it takes a new
// one. Pushes go to the keeper at once. Another part has another tree (graphs.Above).
//
// With sparse=model a push has only the rows that have changed, and a sum the rows that one of its readers
// has not taken, in the values in which they were sent. So a newer sum can replace one that nobody has
// read, and the readers copy what they take and acknowledge it. A filter holds back rows that have
// changed little: a worker's stay with what has not been pushed, a keeper's are the difference between
// the sum and what its readers know. Nothing is held back of the last push of a rank that closes the vector.
//
// The goroutine of package progress does all this for keepers and workers while their loops
// compute. A rank that closes the vector pushes its last changes at a clock that nobody waits for; a rank
// through which others have a sum goes on until these have closed the vector, or it leaves the job, which
// waits for that. If it leaves before, those below fail, and still push their last changes.
//
// # Files
//
// core.go decides, as a value without data, transport and time. engine.go has the memory and the
// boxes, pass.go moves the bytes, rows.go those of some rows, and calls.go has what a gather asks. When
// that is done engine.Changes says.
//
// # Caveats
//
// Which changes of another rank are there differs from part to part, and the order in which they
// were added with each run, until an allreduce. The part of a keeper that dies is lost, and no
// rank takes over from one that passes a part on. A job of one machine goes on when another rank dies.
// An allreduce sums what the ranks in it have changed; so each keeper keeps the changes of such ranks
// apart as well, and counts those of the dead as its own.
package shards

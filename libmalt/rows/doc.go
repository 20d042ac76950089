// Package rows carries vectors of which each rank holds other rows, by ids of 64 bits, and wants
// others: sparse allreduce. A sync is a collective call (core.Meeting) after which each wanted row
// is the fold of all rows with its id.
//
// Ids are mixed, so that equal ranges of them are about equally full. The ranks meet in the
// stages of a butterfly (graphs.Stage), of which there is one on the graph all. In each the
// range for which a rank is responsible is cut into as many parts as its group has members, and
// each member becomes responsible for one: the others send it their rows with such ids, and it
// folds those with equal ids into one. After the last stage each rank has all that there is of its range. What
// is wanted comes back the same way: each member sends what it was asked for.
//
// # The plan
//
// Which row goes where, and which row it is folded into there, depends on the ids alone. So that is found out once,
// when the vector is made: down the stages go lists of ids, and up what no rank holds. A sync sends
// values alone, from and to the places of the plan. Lists are sorted, merged pair by
// pair, and checked before they are used: no id is looked up by its hash.
//
// # Messages
//
// Two ranks meet in one stage only. A queue each way carries all that they have for each other, in
// chunks of up to 256 KiB (core.ChunkBytes), whole rows:
//
//	Clock  the number of the call: what one has left that was given up is dropped
//	Kind   the round: down the stages from 0 on, and up again
//	Tag    where in the round the chunk begins, Age how many bytes it has in all
//
// A list is the number of ids, each as its distance from the one before as a varint, and the number of rows
// of each, also varints; then the wanted ids in the same way, without numbers of rows.
//
// Sending, receiving and folding of a round go on together. A row is folded in the order of the
// members, for the same bits everywhere: it waits while a member before its own may yet bring a
// row for the same place.
//
// # Files
//
// ids.go has sets of ids, and plan.go and course.go decide: what goes where, and what is to be done with a
// message. They are values without data, transport and time. engine.go and call.go move the bytes.
//
// # Caveats
//
// The result is there when all has come. A sync that was given up has changed nothing, but
// its messages stay in the queues until the next one. A job that goes on when ranks die
// cannot have such vectors.
package rows

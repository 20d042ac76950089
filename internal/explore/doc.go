// Package explore runs concurrent code through every interleaving of its
// accesses to shared memory. It is for tests only.
//
// The code under test is the real one. Under the build tag "explore", each access
// to a mem.Word, and each futex call, asks this package before it runs. Check
// then runs the threads of a small case one access at a time, in every possible
// order:
//
//	res := explore.Check(explore.Options{Kills: 1}, func(x *explore.Exec) {
//		m := x.Memory(128)
//		x.Go("writer", func(t *explore.Thread) { mem.WordAt(m, 0).Store(1) })
//		x.Go("reader", func(t *explore.Thread) {
//			if mem.WordAt(m, 0).Load() > 1 {
//				t.Fail("never written")
//			}
//		})
//	})
//
// # Search
//
// The search goes depth first over schedules. An execution continues until it
// reaches a state seen before; the next one replays the beginning of the schedule
// and takes another turn. A state is the contents of shared memory, and for each
// thread the results of its accesses so far: the same code with the same results is
// at the same place. With Thread.At, a thread states its local state, so that paths
// that differ only in the past become one state.
//
// Words that only one thread uses, or that no thread writes, need no turns. The
// search finds these words by itself: most by a few executions of chance beforehand. When
// two threads access another word later, that counts as shared from then on, and the
// search starts again.
//
// A thread may die at every step, like a killed process: it takes no further turn. A
// futex wait ends when the thread is woken, never by time. So a lost wake-up is a
// state in which no thread can go on.
//
// If there are too many interleavings, Options.Preemptions limits how often a thread
// that could go on has to stop for another; waits and deaths do not count. Most
// faults need one or two preemptions. A case that is to look at the end of a protocol
// may begin there: Exec.Open has threads go as far as they can, one after the other, and
// one may be dead by then.
//
// # Rules without memory
//
// Values runs rules that are pure functions through every state. There a state is one value,
// with all messages on their way, and the search goes breadth first, so that a failure comes
// with a shortest trace. Values.Ends checks that a good end stays within reach without any
// further failure: a dead end, or a ring without an exit, is a fault.
//
// # Caveats
//
// Memory is sequentially consistent, as Go's atomics are, or with Options.Buffered
// that of x86 with plain stores. An access that does not go through a Word happens
// together with the access before it: to see a torn payload, write and read it in
// two Words. The result of such an access is not part of a thread's past: it must
// follow from the results of its Words, or be passed to Observe.
//
// States are compared by 64-bit hashes. With ten million states, the probability
// that two have the same hash, which could hide a fault, is 3 in a million.
//
// The threads of a case must be deterministic: no clocks, no random numbers, no
// order of maps, no goroutines.
//
// # Checks of the protocols
//
// The code of the boxes, of the doorbell, of votes and of gathers, scatters and collectives
// runs through *every* interleaving of small cases, with a death at every step: go
// test -tags explore -run TestExplore -v ./rdma/box ./rdma/remote ./rdma/rendezvous
// ./rdma/vote ./libmalt.
// Under that tag each access to a mem.Word and each futex call is one turn of the
// scheduler, which tries all orders. A failure comes with the turns that lead to it.
// Go's atomics are sequentially consistent; on x86 each store is an exchange. The
// cases called *plain stores* replace the exchanges by the store buffers of x86, and
// show which exchanges are needed as fences.
//
// tests/go/mutations_*_test.go list the steps of the protocols as mutations: each
// step is left out, or swapped with its neighbour, and a case must fail. A mutation
// names the function and what is looked for in its syntax tree, so it survives a
// rename of variables or a move to another file. A commit that changes a step also
// changes its case, its mutation and its text. make explore adds cases that take an
// hour.
//
// tests/go/testdata/explored.txt says how many states, turns and executions each case
// has. They change if the order of shared words does, and only then; so a commit that
// moves code leaves them alone. MALT_UPDATE=1 go test ./tests/go -run '^TestExplore$'
// writes the file again.
//
// Two cases have too many interleavings: an exchange between two hosts of which one
// has two ranks, and one of two chunks that is given up. They run with one
// preemption, and in make explore with a death and with two or three preemptions
// (preemptions= in libmalt/explore_across_test.go). The ranks of one host in an
// exchange, and two hosts of one rank each, run through every interleaving.
//
// The cases of survivors that settle have one preemption at most. Those with a second death
// have none, and begin late: of four ranks one is dead, and another has completed the sync or
// the call with its data, which it forwards to the two that are left, and dies at any step of
// that (opens= in libmalt/explore_settle_test.go).
package explore

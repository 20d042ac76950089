// Package explore runs concurrent code through every interleaving of its
// accesses to shared memory. It is for tests only.
//
// The code under test is the real one. Under the build tag "explore" each access
// to a mem.Word, and each futex call, asks this package before it is carried
// out; Check then runs the threads of a small case one access at a time, in
// every order there is:
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
// # How
//
// Depth first over schedules: an execution goes on until it comes to a state
// seen before; the next one replays the beginning of the schedule and takes
// another turn. A state is the contents of shared memory, and for each thread
// what its accesses have returned so far: with the same code and the same
// returns it is at the same place. Thread.At says at what its local state is,
// so that ways that differ only in the past are one state.
//
// Words that one thread alone uses, or that nobody writes, need no turns of
// their own. Which these are is found out, not declared: when two threads meet
// on such a word it is shared from then on, and the search starts again.
//
// A thread may die at every step, as a process that is killed: it takes no
// further turn. A futex wait ends when the thread is woken, never by time: so
// a lost wake-up is a state in which nobody can go on.
//
// Where the interleavings are too many, Options.Preemptions bounds how often a thread
// that could go on has to stop for another: most faults need one or two, and who waits
// or dies is not counted.
//
// # Caveats
//
// Memory is sequentially consistent, as Go's atomics are, or with
// Options.Buffered that of x86 with plain stores. Accesses that are not
// through a Word happen together with the access before them: to see a payload
// torn, write and read it in two Words. What they read is not part of a thread's
// past: it has to follow from what its Words returned, or go to Observe.
//
// States are told apart by 64-bit hashes. With ten million states the chance
// that two fell together, which could hide a fault behind them, is 3 in a
// million.
//
// The threads of a case must be deterministic: no clocks, no random numbers, no
// order of maps, no goroutines.
//
// # How protocols are checked
//
// The code of the boxes, of the doorbell and of gathers, scatters and
// collectives runs through *every* interleaving of small cases, with a death at
// every step: go test -tags explore -run TestExplore -v ./rdma/box
// ./rdma/rendezvous ./libmalt. Under that tag each access to a mem.Word and
// each futex call is one turn of a scheduler (internal/explore), which tries
// all orders; a lost wake-up is then a state in which nobody can go on, and a
// failure comes with the turns that lead to it. Go's atomics are sequentially
// consistent, on x86 each store being an exchange. The cases called *plain
// stores* do without that, with the store buffers of x86, and show which
// exchanges are needed as fences.
//
// tests/go/mutations_*_test.go list the steps of the protocols as mutations:
// each step left out or exchanged with its neighbour, and the case that fails
// without it. A change of a step changes its case, its mutation and its text in
// one commit. make explore adds cases that take an hour.
//
// Not every interleaving is claimed where they are too many: an exchange
// between two hosts of which one has two ranks, and one of two chunks that is
// given up. Of these cases those are searched in which a rank that could go on
// has to stop for another once, and in make explore with a death, twice, or
// three times (preemptions= in libmalt/explore_across_test.go). What the ranks
// of one host do in an exchange, and what two hosts of one rank each do, is
// searched whole.
package explore

// Command capi is libmalt.so: the C interface of MALT. Its manual is malt.h, which
// is written by hand and is the ABI.
//
// Every function of malt.h is a thin wrapper in malt.c over one exported Go
// function maltGo…, so that the C compiler checks the header against the code. The
// wrappers also keep forked children (process.c) and fatal signals that are sent
// (signals.c) away from Go. The Go functions are in one file per section of the
// header: join.go, job.go, vector.go, rows.go, segment.go, memory.go, graph.go,
// inspect.go. They share:
//
//	guard.go     panics become MALT_EINTERNAL
//	errors.go    Go error to malt_status: the only place that knows both
//	handles.go   64-bit handles to objects, without a lock
//	args.go      C arguments, checked
//	deadline.go  timeout_ms to a context that costs nothing until a call sleeps
//	objects.go   the common part of vectors and segments
//	trace.go     memory in which other processes see the rank
//	closed.go    the last message of a process whose descriptors are closed
//
// Nothing else in MALT exports to C, and nothing imports this package.
//
// # Caveats
//
// An exported function does its work on the caller's thread: a hand-over to another
// goroutine would cost a hundred times as much as the call. The one exception is
// malt_init, which must be able to return from its wait and to continue it later.
//
// C never gets a pointer into the Go heap. It gets memory that the transport has
// mapped (vectors, segments, updates) or that comes from malloc (malt_received).
//
// build.sh builds the library. A plain "go build" makes one that works, but exports
// too much and needs the glibc of the build machine.
//
// # Sleeping
//
// A context that is an rdma.Sleeper sleeps for the transport, on the bell's futex.
// The C ABI's context sleeps in C (capi/sleep.c), where Python's interface checks for
// signals 20 times a second without entering Go. Each entry would keep a thread of Go's
// runtime awake for milliseconds.
package main

// main is never called: the build mode is c-shared.
func main() {}

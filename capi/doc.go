// Command capi is libmalt.so: the C face of MALT. Its manual is malt.h, which is
// written by hand and is the ABI.
//
// Every function of malt.h is a thin wrapper in malt.c over one exported Go
// function maltGo…, so that the C compiler holds the header and the code
// together; the wrappers also keep forked children, which process.c knows, out
// of Go, and signals.c keeps from it the fatal signals that are sent. The Go
// functions live in one file per section of the header: join.go, job.go, vector.go,
// rows.go, segment.go, memory.go, graph.go, inspect.go. What they share:
//
//	guard.go     panics become MALT_EINTERNAL
//	errors.go    Go error to malt_status: the only place that knows both
//	handles.go   64-bit handles to objects, without a lock
//	args.go      C arguments, checked
//	deadline.go  timeout_ms to a context that costs nothing unless it is slept on
//	objects.go   what vectors and segments have in common
//
// Nothing else in MALT exports to C, and nothing imports this package.
//
// # Caveats
//
// An exported function does its work on the caller's thread: a hand-over to
// another goroutine would cost a hundred times the call itself. The one
// exception is malt_init, which must be able to come back from its wait and go
// on with it later.
//
// C never gets a pointer into the Go heap. What it gets is either mapped by the
// transport (vectors, segments, updates) or allocated with malloc (malt_received).
//
// build.sh builds the library; plain "go build" makes one that works, but that
// exports too much and needs the glibc of the machine it was built on.
//
// # Sleeping
//
// Who sleeps. A context that is an rdma.Sleeper sleeps in the transport's
// place, on the bell's futex: the C ABI's does so in C (capi/sleep.c), where
// the face of another language looks up 20 times a second without an entry into
// Go, each of which would keep a thread of Go's runtime awake for milliseconds.
package main

// main is never called: the build mode is c-shared.
func main() {}

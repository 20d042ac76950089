package main

/*
#include "malt.h"
#include "malt_internal.h"
*/
import "C"

import (
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"unsafe"

	"malt/libmalt"
	"malt/rdma/auto"
)

// seen is what other processes see of this one; of no bytes: nothing. life guards it.
var seen struct {
	memory unsafe.Pointer
	bytes  C.size_t
	fd     C.int
}

// nowBytes is where the events begin.
const nowBytes = 4096

// show makes this process seen as a rank that is about to join; life is locked. Where the
// system gives no memory it is not, and joins all the same.
func show(c *libmalt.Config) {
	bytes := C.size_t(nowBytes + c.Events*int(unsafe.Sizeof(libmalt.Event{})))
	p := C.maltc_trace(bytes, &seen.fd)
	if p == nil {
		return
	}
	seen.memory, seen.bytes = p, bytes
	listed(0, int32(seen.fd)+1)
	now, events := (*libmalt.Now)(p), []libmalt.Event(nil)
	if c.Events > 0 {
		events = unsafe.Slice((*libmalt.Event)(unsafe.Add(p, nowBytes)), c.Events)
	}
	c.Trace = libmalt.NewTrace(now, events, func() uint64 { return uint64(C.maltc_monotonic()) })
	now.Job.Store(jobNumber(c))
	now.Rank.Store(uint64(c.Rank))
	now.Size.Store(uint64(c.Size))
	now.Pid.Store(uint64(os.Getpid()))
	now.Magic.Store(libmalt.NowMagic)
}

// jobNumber is the same on the ranks of a job, and of another job, here or on another machine, another one;
// 0: of a rank alone.
func jobNumber(c *libmalt.Config) uint64 {
	if c.Store == "" {
		return 0
	}
	number := fnv.New32a()
	fmt.Fprintln(number, c.Store, c.Token)
	if host, _, _ := net.SplitHostPort(c.Store); host == "local" || host == "localhost" || net.ParseIP(host).IsLoopback() {
		machine, _ := os.Hostname()
		fmt.Fprint(number, machine)
	}
	return uint64(number.Sum32())
}

// hide ends that. Nobody may still look, but calls may be under way that write.
func hide() {
	if seen.bytes > 0 {
		listed(int32(seen.fd)+1, 0)
		C.maltc_trace_end(seen.memory, seen.bytes, seen.fd)
		seen.bytes = 0
	}
}

// listed puts an entry of the descriptors that a forked child closes in the place of another.
func listed(old, entry int32) {
	all := auto.Descriptors()
	for i := range all {
		if all[i].CompareAndSwap(old, entry) {
			return
		}
	}
}

//export maltGoMark
func maltGoMark(words C.maltc_text) (status C.malt_status) {
	defer caught(&status)
	var a args
	if s, w := a.text(words, "text", maxNote), a.job(); a.err == nil {
		w.Mark(s)
	}
	return fail(a.err)
}

//export maltGoLog
func maltGoLog(name C.maltc_text, value C.double) (status C.malt_status) {
	defer caught(&status)
	var a args
	if s, w := a.text(name, "name", maxNote), a.job(); a.err == nil {
		w.Log(s, float64(value))
	}
	return fail(a.err)
}

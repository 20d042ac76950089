package main

/*
#include "malt.h"
#include "malt_internal.h"
*/
import "C"

import (
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
	"malt/libmalt"
	"malt/rdma/auto"
)

// seen is memory in which other processes of this user see what this one does; empty: nothing. `malt top`
// finds its descriptor in /proc. So it is in no file system, it goes with the process, and the
// kernel refuses other users. life guards it.
var seen struct {
	memory []byte
	fd     io.Closer
}

// nowBytes is where the events begin.
const nowBytes = 4096

// show makes this process seen as a rank that is about to join; life is locked. Where the
// system gives no memory it is not, and joins all the same.
func show(c *libmalt.Config) {
	fd, memory, err := auto.Memory("malt-rank", nowBytes+c.Events*int(unsafe.Sizeof(libmalt.Event{})))
	if err != nil {
		return
	}
	seen.memory, seen.fd = memory, fd
	p := unsafe.Pointer(&memory[0])
	now := (*libmalt.Now)(p)
	c.Trace = libmalt.NewTrace(now, unsafe.Slice((*libmalt.Event)(unsafe.Add(p, nowBytes)), c.Events), monotonic)
	now.Job.Store(jobNumber(c))
	now.Rank.Store(uint64(c.Rank))
	now.Size.Store(uint64(c.Size))
	now.Pid.Store(uint64(os.Getpid()))
	now.Magic.Store(libmalt.NowMagic)
}

func monotonic() uint64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t)
	return uint64(t.Nano())
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

// hide ends that. Nobody may still look, but calls may be under way that write: there, for nobody.
func hide() {
	if len(seen.memory) > 0 {
		const flags = unix.MAP_FIXED | unix.MAP_PRIVATE | unix.MAP_ANON | unix.MAP_NORESERVE
		_, _ = unix.MmapPtr(-1, 0, unsafe.Pointer(&seen.memory[0]), uintptr(len(seen.memory)), unix.PROT_READ|unix.PROT_WRITE, flags)
		_ = seen.fd.Close()
		seen.memory = nil
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

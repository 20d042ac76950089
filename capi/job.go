package main

/*
#include <stdlib.h>
#include "malt.h"
#include "malt_internal.h"
*/
import "C"

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"unsafe"

	"malt/internal/say"
	"malt/libmalt"
	"malt/rdma"
)

// The job of this process. Go state at package level is for this package alone:
// C has no other place to keep it.
var (
	world   atomic.Pointer[libmalt.World] // nil: not joined
	objects table                         // vectors, segments, graphs

	// life guards joining and leaving; calls in the job do not take it.
	life    sync.Mutex
	pending *joining         // a malt_init that is waiting
	former  []*libmalt.World // left, but some of their memory may still be mapped

	inbox received
)

// job is the world that this process has joined.
func job() (*libmalt.World, error) {
	if w := world.Load(); w != nil {
		return w, nil
	}
	return nil, say.Errorf(errNotInit, "this process is not in a job").At("malt_init has not been called, or malt_finalize was called after it").Try("Call malt_init first.")
}

// jobDeadlines are those of calls of the job.
var jobDeadlines deadlines

//export maltGoAbort
func maltGoAbort(reason C.maltc_text, because C.maltc_because) (status C.malt_status) {
	defer caught(&status)
	var a args
	s, w := a.text(reason, "reason", maxNote), a.job()
	if a.err != nil {
		return fail(a.err)
	}
	why := rdma.HasFailed(w.Rank(), s)
	if because != nil && because.code == C.MALT_EPEER {
		if s = a.text(because.why, "because->why", maxNote); a.err != nil {
			return fail(a.err)
		}
		why = &rdma.PeerError{Rank: int(because.rank), Kind: rdma.Death(because.death), Err: errors.New(s)}
	}
	reportAborted()
	w.Abort(why)
	return C.MALT_OK
}

//export maltGoAt
func maltGoAt(place C.maltc_text) (status C.malt_status) {
	defer caught(&status)
	var a args
	if s, w := a.text(place, "place", maxNote), a.job(); a.err == nil {
		w.At(s)
	}
	return fail(a.err)
}

//export maltGoGeneration
func maltGoGeneration() (generation C.int64_t) {
	var status C.malt_status
	defer func() {
		if status != C.MALT_OK {
			generation = C.int64_t(status)
		}
	}()
	defer caught(&status)
	w, err := job()
	if err != nil {
		status = fail(err)
		return
	}
	return C.int64_t(w.Generation())
}

//export maltGoAlive
func maltGoAlive(p *C.int32_t, capacity C.uint32_t, n *C.uint32_t) (status C.malt_status) {
	defer caught(&status)
	w, err := job()
	if err == nil {
		err = putList(w.Alive(), p, capacity, n, putRank)
	}
	return fail(err)
}

//export maltGoConfirm
func maltGoConfirm(timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	return a.inJob(timeoutMs, func(ctx context.Context, w *libmalt.World) error { return w.Confirm(ctx) })
}

//export maltGoExpel
func maltGoExpel(rank C.int32_t) (status C.malt_status) {
	defer caught(&status)
	w, err := job()
	if err == nil {
		err = w.Expel(int(rank))
	}
	return fail(err)
}

// tell has the caller of a call hear of a death that the job goes on after.
func tell(v rdma.View, dead *rdma.PeerError) {
	C.maltc_viewed(C.int64_t(v.Generation))
	why := C.CString(dead.Err.Error())
	defer C.free(unsafe.Pointer(why))
	C.maltc_news(C.int32_t(dead.Rank), why)
}

// warn has the caller of a call hear of a trouble.
func warn(t libmalt.Trouble) {
	name, why := C.CString(t.Of.Name), (*C.char)(nil)
	defer C.free(unsafe.Pointer(name))
	if t.Why != nil {
		why = C.CString(t.Why.Error())
		defer C.free(unsafe.Pointer(why))
	}
	C.maltc_troubled(&C.malt_trouble{
		kind: C.int32_t(t.Kind), rank: C.int32_t(t.Rank), name: name,
		own: C.uint64_t(t.Own), theirs: C.uint64_t(t.Senders), seconds: C.double(t.Over.Seconds()),
		limit: C.uint64_t(t.Limit), need: C.uint64_t(t.Need), why: why,
	})
}

//export maltGoBarrier
func maltGoBarrier(timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	return a.inJob(timeoutMs, func(ctx context.Context, w *libmalt.World) error { return w.Barrier(ctx) })
}

//export maltGoAllreduce
func maltGoAllreduce(data unsafe.Pointer, array C.maltc_arrays, op C.maltc_text, timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	a := args{required(array, "a")}
	if a.err != nil {
		return fail(a.err)
	}
	bytes, dt := a.elements(array.count, array.dtype, "data")
	b, o := a.memory(data, bytes, "data"), a.op(op)
	as := libmalt.Array{DType: dt, Count: int(array.count), Shape: a.shape(array, "the array")}
	return a.inJob(timeoutMs, func(ctx context.Context, w *libmalt.World) error { return w.AllReduceArray(ctx, b, as, o) })
}

//export maltGoAllgather
func maltGoAllgather(data C.maltc_bytes, bytes C.uint64_t, name, given C.maltc_text, timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	b := a.memory(unsafe.Pointer(data), uint64(bytes), "data")
	as, with := cmp.Or(a.text(name, "call", maxWord), "malt.allgather"), a.text(given, "with", maxNote)
	return a.inJob(timeoutMs, func(ctx context.Context, w *libmalt.World) error {
		all, err := w.AllGatherFor(ctx, as, with, b)
		if err == nil {
			err = inbox.set(all, everyRank)
		}
		return err
	})
}

//export maltGoBroadcast
func maltGoBroadcast(data C.maltc_bytes, bytes C.uint64_t, root C.int32_t, timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	return a.inJob(timeoutMs, func(ctx context.Context, w *libmalt.World) error {
		var b []byte
		if int(root) == w.Rank() {
			var own args
			if b = own.memory(unsafe.Pointer(data), uint64(bytes), "data"); own.err != nil {
				return own.err
			}
		}
		b, err := w.Broadcast(ctx, b, int(root))
		if err != nil {
			return err
		}
		all := make([][]byte, w.Size())
		all[root] = b
		return inbox.set(all, int(root))
	})
}

//export maltGoReceived
func maltGoReceived(rank C.int32_t, data *unsafe.Pointer, bytes *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	a := args{cmp.Or(required(data, "data"), required(bytes, "bytes"))}
	if a.job(); a.err != nil {
		return fail(a.err)
	}
	p, n, err := inbox.from(int(rank))
	if err == nil {
		*data, *bytes = p, C.uint64_t(n)
	}
	return fail(err)
}

package main

/*
#include "malt_internal.h"
*/
import "C"

import (
	"context"
	"slices"
	"sync/atomic"
	"unsafe"

	"malt/internal/say"
	"malt/libmalt"
)

// exchanger is what vectors and segments have in common: the functions malt_object_*.
type exchanger interface {
	Bytes() []byte
	Await(context.Context) error
	Begin(context.Context) ([]libmalt.Update, error)
	End(folded bool) error
	Clock() uint64
	Describe() string
	Lockstep() bool
	Receivers() []int
	Senders() []int
	Stats() (libmalt.Stats, error)
	Configure(ctx context.Context, options string) error
	Close() error
}

// object is an open vector or segment.
type object struct {
	exchanger
	world   *libmalt.World
	vector  *libmalt.Vector  // nil for a segment
	segment *libmalt.Segment // nil for a vector

	deadlines deadlines

	folding atomic.Pointer[folding] // between gather_begin and gather_end, else nil
}

// folding is a gather whose updates C can see. One that malt_vector_gather_with
// began is not ended by anybody else: the function is reading their memory.
type folding struct {
	updates    []libmalt.Update
	byFunction bool
}

// gathered is the gather that is open.
func (o *object) gathered() (*folding, error) {
	if f := o.folding.Load(); f != nil {
		return f, nil
	}
	return nil, say.Errorf(libmalt.ErrState, "no gather of %s is open", o.exchanger).Try("Call gather_begin first.")
}

// exchanging is the vector or segment of a handle, as which k allows.
func exchanging(h C.malt_handle, k kind) (*object, error) {
	if is := kind(h >> kindShift); k == kindObject && (is == kindVector || is == kindSegment) {
		k = is
	}
	o, err := objects.get(uint64(h), k)
	if err != nil {
		return nil, err
	}
	return o.(*object), nil
}

//export maltGoAwait
func maltGoAwait(h C.malt_handle, timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	return a.on(h, kindObject, timeoutMs, func(ctx context.Context, o *object) error { return o.Await(ctx) })
}

//export maltGoGatherBegin
func maltGoGatherBegin(h C.malt_handle, byFunction C.int32_t, timeoutMs C.int64_t, n *C.uint32_t) (status C.malt_status) {
	defer caught(&status)
	a := args{required(n, "n")}
	return a.on(h, kindObject, timeoutMs, func(ctx context.Context, o *object) error {
		updates, err := o.Begin(ctx)
		if err == nil {
			o.folding.Store(&folding{updates, byFunction != 0})
			*n = C.uint32_t(len(updates))
		}
		return err
	})
}

//export maltGoGatherUpdate
func maltGoGatherUpdate(h C.malt_handle, first, n C.uint32_t, u *C.malt_update) (status C.malt_status) {
	defer caught(&status)
	var a args
	if o := a.object(h, kindObject); a.is(required(u, "u")) {
		a.is(o.putUpdates(uint64(first), uint64(n), u))
	}
	return fail(a.err)
}

// putUpdates describes n updates from number first on to C.
func (o *object) putUpdates(first, n uint64, out *C.malt_update) error {
	f, err := o.gathered()
	if err != nil {
		return err
	}
	if first+n > uint64(len(f.updates)) {
		return badArgument("update %d of %d: they are numbered from 0", first+n-1, len(f.updates))
	}
	list := unsafe.Slice(out, n)
	for i := range list {
		k := first + uint64(i)
		data := f.updates[k].Data
		if o.vector != nil {
			if data, err = o.vector.Whole(int(k)); err != nil {
				return err
			}
		}
		describe(&list[i], &f.updates[k], data)
	}
	return nil
}

// describe tells C of an update.
func describe(out *C.malt_update, u *libmalt.Update, data []byte) {
	*out = C.malt_update{
		data:   unsafe.Pointer(unsafe.SliceData(data)),
		bytes:  C.uint64_t(len(data)),
		rank:   C.int32_t(u.Rank),
		clock:  C.uint64_t(u.Clock),
		age:    C.int64_t(u.Age),
		weight: C.double(u.Weight),
	}
}

//export maltGoGatherEnd
func maltGoGatherEnd(h C.malt_handle, byFunction, folded C.int32_t) (status C.malt_status) {
	defer caught(&status)
	o, err := exchanging(h, kindObject)
	if err != nil {
		return fail(err)
	}
	f, err := o.gathered()
	switch {
	case err != nil:
	case f.byFunction != (byFunction != 0):
		err = say.Errorf(libmalt.ErrBusy, "malt_vector_gather_with began this gather, and ends it when its function returns")
	case !o.folding.CompareAndSwap(f, nil):
		_, err = o.gathered() // another thread was faster
	default:
		err = o.End(folded != 0)
	}
	return fail(err)
}

//export maltGoData
func maltGoData(h C.malt_handle, i C.uint32_t, data *unsafe.Pointer, bytes *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	o := a.object(h, kindObject)
	if !a.is(required(data, "data")) {
		return fail(a.err)
	}
	arrays := 1
	if o.vector != nil {
		arrays = o.vector.Arrays()
	}
	switch {
	case int(i) >= arrays:
		return fail(badArgument("array %d of %s, which has %d: they are numbered from 0", i, o.exchanger, arrays))
	case o.vector != nil:
		putMemory(o.vector.Array(int(i)), data, bytes)
	default:
		putMemory(o.Bytes(), data, bytes)
	}
	return C.MALT_OK
}

// putMemory hands mapped memory to C. bytes may be NULL.
func putMemory(b []byte, data *unsafe.Pointer, bytes *C.uint64_t) {
	*data = unsafe.Pointer(unsafe.SliceData(b))
	if bytes != nil {
		*bytes = C.uint64_t(len(b))
	}
}

//export maltGoConfigure
func maltGoConfigure(h C.malt_handle, options C.maltc_text, timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	text := a.text(options, "options", maxGraph)
	return a.on(h, kindObject, timeoutMs, func(ctx context.Context, o *object) error { return o.Configure(ctx, text) })
}

//export maltGoClock
func maltGoClock(h C.malt_handle, clock *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	return look(h, kindObject, clock, "clock", func(o *object) C.uint64_t { return C.uint64_t(o.Clock()) })
}

//export maltGoLockstep
func maltGoLockstep(h C.malt_handle, yes *C.int32_t) (status C.malt_status) {
	defer caught(&status)
	return look(h, kindObject, yes, "yes", func(o *object) (is C.int32_t) {
		if o.Lockstep() {
			is = 1
		}
		return is
	})
}

//export maltGoDescribe
func maltGoDescribe(h C.malt_handle, p *C.char, capacity C.uint64_t, need *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	o, err := exchanging(h, kindObject)
	if err == nil {
		err = putText(o.Describe(), p, capacity, need)
	}
	return fail(err)
}

//export maltGoNeighbours
func maltGoNeighbours(h C.malt_handle, senders C.int32_t, p *C.int32_t, capacity C.uint32_t, n *C.uint32_t) (status C.malt_status) {
	defer caught(&status)
	o, err := exchanging(h, kindObject)
	if err != nil {
		return fail(err)
	}
	list := o.Receivers
	if senders != 0 {
		list = o.Senders
	}
	return fail(putList(list(), p, capacity, n, putRank))
}

//export maltGoStats
func maltGoStats(h C.malt_handle, totals *C.malt_totals, edges *C.malt_edge, capacity C.uint32_t, n *C.uint32_t) (status C.malt_status) {
	defer caught(&status)
	o, err := exchanging(h, kindObject)
	if err != nil {
		return fail(err)
	}
	s, err := o.Stats()
	if err != nil {
		return fail(err)
	}
	return putStats(s, slices.Concat(o.Receivers(), o.Senders()), o.world, totals, edges, capacity, n)
}

//export maltGoJobStats
func maltGoJobStats(totals *C.malt_totals, edges *C.malt_edge, capacity C.uint32_t, n *C.uint32_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	w := a.job()
	if a.err != nil {
		return fail(a.err)
	}
	s, err := w.Waited()
	if err != nil {
		return fail(err)
	}
	return putStats(s, nil, w, totals, edges, capacity, n)
}

func putStats(s libmalt.Stats, neighbours []int, w *libmalt.World, totals *C.malt_totals, edges *C.malt_edge, capacity C.uint32_t, n *C.uint32_t) C.malt_status {
	if totals != nil {
		*totals = C.malt_totals{
			scatters:        C.uint64_t(s.Scatters),
			gathers:         C.uint64_t(s.Gathers),
			scatter_seconds: C.double(s.ScatterTime.Seconds()),
			wait_seconds:    C.double(s.WaitTime.Seconds()),
			fold_seconds:    C.double(s.FoldTime.Seconds()),
		}
	}
	return fail(putList(peers(s.Edges, neighbours), edges, capacity, n, func(c *C.malt_edge, rank int) {
		e, traffic := &s.Edges[rank], w.Traffic(rank)
		*c = C.malt_edge{
			rank:            C.int32_t(rank),
			sent_messages:   C.uint64_t(e.SentMessages),
			sent_bytes:      C.uint64_t(e.SentBytes),
			folded_messages: C.uint64_t(e.FoldedMessages),
			folded_bytes:    C.uint64_t(e.FoldedBytes),
			overwritten:     C.uint64_t(e.Overwritten),
			age_sum:         C.int64_t(e.AgeSum),
			age_max:         C.int64_t(e.AgeMax),
			waited:          C.double(e.Waited.Seconds()),
			rdma:            C.int32_t(traffic.RDMA),
			rdma_bytes:      C.uint64_t(traffic.SentPlaced),
		}
	}))
}

// peers are the ranks of which malt_object_stats has something to tell, in
// order: the present neighbours, and those that something went to or came from.
func peers(edges []libmalt.Edge, neighbours []int) (ranks []int) {
	for r, e := range edges {
		if e != (libmalt.Edge{}) || slices.Contains(neighbours, r) {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

//export maltGoClose
func maltGoClose(h C.malt_handle) (status C.malt_status) {
	defer caught(&status)
	o, err := exchanging(h, kindObject)
	if err == nil {
		err = o.Close()
	}
	if err == nil && !objects.remove(uint64(h)) {
		err = &handleError{uint64(h), kindObject} // another thread was faster
	}
	return fail(err)
}

package main

/*
#include "malt_internal.h"
*/
import "C"

import (
	"context"
	"fmt"
	"unsafe"

	"malt/libmalt"
)

//export maltGoVectorNew
func maltGoVectorNew(arrays C.maltc_arrays, n C.uint32_t, name, options C.maltc_text, timeoutMs C.int64_t, out *C.malt_handle) (status C.malt_status) {
	defer caught(&status)
	a := args{required(out, "out")}
	list := a.arrays(arrays, n)
	label, opts := a.labels(name, options)
	return a.inJob(timeoutMs, func(ctx context.Context, w *libmalt.World) error {
		v, err := w.NewVector(ctx, list, label, opts)
		if err == nil {
			*out = C.malt_handle(objects.add(kindVector, &object{exchanger: v, world: w, vector: v}))
		}
		return err
	})
}

//export maltGoVectorCheck
func maltGoVectorCheck(name, options C.maltc_text) (status C.malt_status) {
	defer caught(&status)
	var a args
	label, opts := a.labels(name, options)
	if w := a.job(); a.err == nil {
		a.is(w.Check(label, opts))
	}
	return fail(a.err)
}

// arrays reads what a vector is to be made of. The first values stay the
// caller's: libmalt copies them.
func (a *args) arrays(p *C.malt_array, n C.uint32_t) []libmalt.Array {
	switch {
	case n == 0:
		a.is(badArgument("a vector of 0 arrays: expected at least one (its count may be 0)"))
	case p == nil:
		a.is(badArgument("arrays is NULL, but n is %d", n))
	case n > maxList:
		a.is(badArgument("a vector of %d arrays; the limit is %d", n, maxList))
	}
	if a.err != nil {
		return nil
	}
	list := make([]libmalt.Array, n)
	for i, from := range unsafe.Slice(p, n) {
		what := fmt.Sprintf("arrays[%d]", i)
		bytes, dt := a.elements(from.count, from.dtype, what)
		list[i] = libmalt.Array{DType: dt, Count: int(from.count), Row: int(from.row), Shape: a.shape(&from, what)}
		if from.ids != nil || from.wants != nil || from.nwants > 0 {
			list[i].IDs = a.ids(from.ids, rowsOf(from), "ids")
			list[i].Wants = a.ids(from.wants, uint64(from.nwants), "wants")
		}
		if a.err != nil {
			return nil
		}
		if from.init != nil && from.count > 0 {
			list[i].Init = unsafe.Slice((*byte)(from.init), int(bytes))
		}
	}
	return list
}

// rowsOf is how many rows an array has, of which C counts the elements.
func rowsOf(a C.malt_array) uint64 {
	if a.ids == nil {
		return 0
	}
	return uint64(a.count) / uint64(max(a.row, 1))
}

// maxAxes is the most axes of an array: numpy's.
const maxAxes = 64

// shape reads the shape of what; nil, which is not that of a number, stands for
// NULL.
func (a *args) shape(from *C.malt_array, what string) []int {
	switch {
	case from.shape == nil && from.axes == 0:
		return nil
	case from.shape == nil:
		a.is(badArgument("%s has %d axes, but its shape is NULL", what, from.axes))
		return nil
	case from.axes > maxAxes:
		a.is(badArgument("%s has %d axes; the limit is %d", what, from.axes, maxAxes))
		return nil
	}
	shape := make([]int, from.axes)
	for i, n := range unsafe.Slice(from.shape, from.axes) {
		if n > maxBytes {
			a.is(badArgument("axis %d of %s has length %d; the limit is %d", i, what, n, uint64(maxBytes)))
		}
		shape[i] = int(n)
	}
	return shape
}

// maltGoVectorMemory is the whole vector, for folds.
//
//export maltGoVectorMemory
func maltGoVectorMemory(h C.malt_handle, data *unsafe.Pointer, bytes *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	if o := a.object(h, kindVector); a.err == nil {
		putMemory(o.Bytes(), data, bytes)
	}
	return fail(a.err)
}

//export maltGoVectorScatter
func maltGoVectorScatter(h C.malt_handle, rows C.maltc_rows, nrows C.uint64_t, to C.maltc_ranks, nto C.uint32_t, weight C.double, timeoutMs C.int64_t, sent *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	ranks, list := a.ranks(to, nto, "to"), a.rows(rows, nrows)
	return a.onVector(h, timeoutMs, func(ctx context.Context, v *libmalt.Vector) error {
		n, err := v.ScatterRows(ctx, list, ranks, float64(weight))
		if err == nil && sent != nil {
			*sent = C.uint64_t(n)
		}
		return err
	})
}

//export maltGoVectorGather
func maltGoVectorGather(h C.malt_handle, fold C.maltc_text, timeoutMs C.int64_t, folded *C.uint32_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	f := a.text(fold, "fold", maxWord)
	return a.onVector(h, timeoutMs, func(ctx context.Context, v *libmalt.Vector) error {
		return putFolded(folded)(v.Gather(ctx, f))
	})
}

//export maltGoVectorSync
func maltGoVectorSync(h C.malt_handle, rows C.maltc_rows, nrows C.uint64_t, weight C.double, timeoutMs C.int64_t, folded *C.uint32_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	list := a.rows(rows, nrows)
	return a.onVector(h, timeoutMs, func(ctx context.Context, v *libmalt.Vector) error {
		next, err := v.Meet(ctx)
		if next != nil {
			v = succeed(v.World(), next, v)
		}
		if err != nil {
			return err
		}
		return putFolded(folded)(v.SyncRows(ctx, list, float64(weight)))
	})
}

//export maltGoVectorSyncSlack
func maltGoVectorSyncSlack(h C.malt_handle, slack C.uint64_t, weight C.double, timeoutMs C.int64_t, folded *C.uint32_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	return a.onVector(h, timeoutMs, func(ctx context.Context, v *libmalt.Vector) error {
		return putFolded(folded)(v.SyncSlack(ctx, float64(weight), uint64(slack)))
	})
}

//export maltGoVectorAge
func maltGoVectorAge(h C.malt_handle, age *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	return look(h, kindVector, age, "age", func(o *object) C.uint64_t { return C.uint64_t(o.vector.Age()) })
}

// putFolded stores the count of a gather where the caller wants it.
func putFolded(out *C.uint32_t) func(int, error) error {
	return func(n int, err error) error {
		if err == nil && out != nil {
			*out = C.uint32_t(n)
		}
		return err
	}
}

//export maltGoVectorAllreduce
func maltGoVectorAllreduce(h C.malt_handle, op C.maltc_text, weight C.double, timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	o := a.op(op)
	return a.onVector(h, timeoutMs, func(ctx context.Context, v *libmalt.Vector) error {
		return v.AllReduceWeight(ctx, o, float64(weight))
	})
}

//export maltGoVectorBroadcast
func maltGoVectorBroadcast(h C.malt_handle, root C.int32_t, timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	return a.onVector(h, timeoutMs, func(ctx context.Context, v *libmalt.Vector) error { return v.Broadcast(ctx, int(root)) })
}

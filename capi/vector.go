package main

/*
#include "malt.h"
*/
import "C"

import (
	"context"
	"fmt"
	"unsafe"

	"malt/libmalt"
)

//export maltGoVectorNew
func maltGoVectorNew(arrays *C.malt_array, n C.uint32_t, name, options *C.char, timeoutMs C.int64_t, out *C.malt_handle) (status C.malt_status) {
	defer caught(&status)
	if err := required(out, "out"); err != nil {
		return fail(err)
	}
	list, err := arrayList(arrays, n)
	if err != nil {
		return fail(err)
	}
	label, opts, err := labels(name, options)
	if err != nil {
		return fail(err)
	}
	return fail(inJob(timeoutMs, func(ctx context.Context, w *libmalt.World) error {
		v, err := w.NewVector(ctx, list, label, opts)
		if err == nil {
			*out = C.malt_handle(objects.add(kindVector, &object{exchanger: v, world: w, vector: v}))
		}
		return err
	}))
}

//export maltGoVectorCheck
func maltGoVectorCheck(name, options *C.char) (status C.malt_status) {
	defer caught(&status)
	label, opts, err := labels(name, options)
	if err != nil {
		return fail(err)
	}
	w, err := job()
	if err != nil {
		return fail(err)
	}
	return fail(w.Check(label, opts))
}

// arrayList reads what a vector is to be made of. The first values stay the
// caller's: libmalt copies them.
func arrayList(p *C.malt_array, n C.uint32_t) ([]libmalt.Array, error) {
	switch {
	case n == 0:
		return nil, badArgument("a vector of 0 arrays: expected at least one (its count may be 0)")
	case p == nil:
		return nil, badArgument("arrays is NULL, but n is %d", n)
	case n > maxList:
		return nil, badArgument("a vector of %d arrays; the limit is %d", n, maxList)
	}
	list := make([]libmalt.Array, n)
	for i, a := range unsafe.Slice(p, n) {
		dt, size, err := dtypeOf(a.dtype, "arrays[%d]", i)
		if err != nil {
			return nil, err
		}
		count := uint64(a.count)
		switch {
		case count > maxBytes/size:
			return nil, badArgument("arrays[%d] has %d elements; the limit is %d", i, count, uint64(maxBytes)/size)
		}
		shape, err := shapeOf(&a, fmt.Sprintf("arrays[%d]", i))
		if err != nil {
			return nil, err
		}
		list[i] = libmalt.Array{DType: dt, Count: int(count), Row: int(a.row), Shape: shape}
		if a.ids != nil || a.wants != nil || a.nwants > 0 {
			if list[i].IDs, err = idList(a.ids, rowsOf(a), "ids"); err == nil {
				list[i].Wants, err = idList(a.wants, uint64(a.nwants), "wants")
			}
			if err != nil {
				return nil, err
			}
		}
		if a.init != nil && count > 0 {
			list[i].Init = unsafe.Slice((*byte)(a.init), int(count*size))
		}
	}
	return list, nil
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

// shapeOf reads the shape of what; nil, which is not that of a number, stands for
// NULL.
func shapeOf(a *C.malt_array, what string) ([]int, error) {
	switch {
	case a.shape == nil && a.axes == 0:
		return nil, nil
	case a.shape == nil:
		return nil, badArgument("%s has %d axes, but its shape is NULL", what, a.axes)
	case a.axes > maxAxes:
		return nil, badArgument("%s has %d axes; the limit is %d", what, a.axes, maxAxes)
	}
	shape := make([]int, a.axes)
	for i, n := range unsafe.Slice(a.shape, a.axes) {
		if n > maxBytes {
			return nil, badArgument("axis %d of %s has length %d; the limit is %d", i, what, n, uint64(maxBytes))
		}
		shape[i] = int(n)
	}
	return shape, nil
}

// labels reads the name and the options of an object to be made.
func labels(name, options *C.char) (n, o string, err error) {
	if n, err = text(name, "name", maxWord); err == nil {
		o, err = text(options, "options", maxGraph)
	}
	return n, o, err
}

// onVector runs a call that may wait on a vector.
func onVector(h C.malt_handle, timeoutMs C.int64_t, call func(context.Context, *libmalt.Vector) error) error {
	return on(h, kindVector, timeoutMs, func(ctx context.Context, o *object) error { return call(ctx, o.vector) })
}

// maltGoVectorMemory is the whole vector, for folds.
//
//export maltGoVectorMemory
func maltGoVectorMemory(h C.malt_handle, data *unsafe.Pointer, bytes *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	o, err := exchanging(h, kindVector)
	if err == nil {
		putMemory(o.Bytes(), data, bytes)
	}
	return fail(err)
}

//export maltGoVectorScatter
func maltGoVectorScatter(h C.malt_handle, rows *C.int64_t, nrows C.uint64_t, to *C.int32_t, nto C.uint32_t, weight C.double, timeoutMs C.int64_t, sent *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	ranks, err := rankList(to, nto, "to")
	if err != nil {
		return fail(err)
	}
	list, err := rowList(rows, nrows)
	if err != nil {
		return fail(err)
	}
	return fail(onVector(h, timeoutMs, func(ctx context.Context, v *libmalt.Vector) error {
		n, err := v.ScatterRows(ctx, list, ranks, float64(weight))
		if err == nil && sent != nil {
			*sent = C.uint64_t(n)
		}
		return err
	}))
}

//export maltGoVectorGather
func maltGoVectorGather(h C.malt_handle, fold *C.char, timeoutMs C.int64_t, folded *C.uint32_t) (status C.malt_status) {
	defer caught(&status)
	f, err := text(fold, "fold", maxWord)
	if err != nil {
		return fail(err)
	}
	return fail(onVector(h, timeoutMs, func(ctx context.Context, v *libmalt.Vector) error {
		return putFolded(folded)(v.Gather(ctx, f))
	}))
}

//export maltGoVectorSync
func maltGoVectorSync(h C.malt_handle, rows *C.int64_t, nrows C.uint64_t, weight C.double, timeoutMs C.int64_t, folded *C.uint32_t) (status C.malt_status) {
	defer caught(&status)
	list, err := rowList(rows, nrows)
	if err != nil {
		return fail(err)
	}
	return fail(onVector(h, timeoutMs, func(ctx context.Context, v *libmalt.Vector) error {
		next, err := v.Meet(ctx)
		if next != nil {
			v = succeed(v.World(), next, v)
		}
		if err != nil {
			return err
		}
		return putFolded(folded)(v.SyncRows(ctx, list, float64(weight)))
	}))
}

//export maltGoVectorSyncSlack
func maltGoVectorSyncSlack(h C.malt_handle, slack C.uint64_t, weight C.double, timeoutMs C.int64_t, folded *C.uint32_t) (status C.malt_status) {
	defer caught(&status)
	return fail(onVector(h, timeoutMs, func(ctx context.Context, v *libmalt.Vector) error {
		return putFolded(folded)(v.SyncSlack(ctx, float64(weight), uint64(slack)))
	}))
}

//export maltGoVectorAge
func maltGoVectorAge(h C.malt_handle, age *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	o, err := exchanging(h, kindVector)
	if err == nil {
		err = required(age, "age")
	}
	if err == nil {
		*age = C.uint64_t(o.vector.Age())
	}
	return fail(err)
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
func maltGoVectorAllreduce(h C.malt_handle, op *C.char, timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	o, err := opText(op)
	if err != nil {
		return fail(err)
	}
	return fail(onVector(h, timeoutMs, func(ctx context.Context, v *libmalt.Vector) error { return v.AllReduce(ctx, o) }))
}

//export maltGoVectorBroadcast
func maltGoVectorBroadcast(h C.malt_handle, root C.int32_t, timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	return fail(onVector(h, timeoutMs, func(ctx context.Context, v *libmalt.Vector) error { return v.Broadcast(ctx, int(root)) }))
}

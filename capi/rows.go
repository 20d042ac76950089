package main

/*
#include "malt_internal.h"
*/
import "C"

import (
	"cmp"
	"context"
	"unsafe"

	"malt/libmalt"
)

//export maltGoVectorWanted
func maltGoVectorWanted(h C.malt_handle, rows *unsafe.Pointer, missing **C.uint8_t, n *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	o := a.object(h, kindVector)
	if !a.is(cmp.Or(required(rows, "rows"), required(missing, "missing"))) {
		return fail(a.err)
	}
	values, marks, count, err := o.vector.Wanted()
	if err == nil {
		*rows = unsafe.Pointer(unsafe.SliceData(values))
		*missing = (*C.uint8_t)(unsafe.SliceData(marks))
		if n != nil {
			*n = C.uint64_t(count)
		}
	}
	return fail(err)
}

//export maltGoVectorConfigureRows
func maltGoVectorConfigureRows(h C.malt_handle, ids C.maltc_ids, n C.uint64_t, wants C.maltc_ids, nwants C.uint64_t, timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	rows, wanted := a.ids(ids, uint64(n), "ids"), a.ids(wants, uint64(nwants), "wants")
	return a.onVector(h, timeoutMs, func(ctx context.Context, v *libmalt.Vector) error {
		return v.ConfigureRows(ctx, rows, wanted)
	})
}

//export maltGoGatherRows
func maltGoGatherRows(h C.malt_handle, i C.uint32_t, u *C.malt_update, rows *C.uint32_t, values unsafe.Pointer, capacity C.uint64_t, n *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	o, err := exchanging(h, kindVector)
	if err != nil {
		return fail(err)
	}
	f, err := o.gathered()
	switch {
	case err != nil:
	case int(i) >= len(f.updates):
		err = badArgument("update %d of %d: they are numbered from 0", i, len(f.updates))
	case o.vector.Row() == 0:
		err = badArgument("%s is not sparse, so its updates have no rows", o.vector).Try("malt_object_gather_update gives the whole update.")
	case (rows == nil || values == nil) && capacity > 0:
		err = badArgument("rows or values is NULL, but cap is %d", capacity).Try("Pass cap 0 to get only the number.")
	}
	if err == nil {
		from := &f.updates[i]
		count := putRows(o.vector, from, rows, values, uint64(capacity))
		if n != nil {
			*n = C.uint64_t(count)
		}
		if u != nil {
			describe(u, from, nil)
		}
	}
	return fail(err)
}

// putRows copies the first rows of u, and returns how many it has.
func putRows(v *libmalt.Vector, u *libmalt.Update, rows *C.uint32_t, values unsafe.Pointer, capacity uint64) int {
	size := v.Row()
	count := len(u.Data) / size
	if m := int(min(capacity, uint64(count))); m > 0 {
		index := unsafe.Slice((*uint32)(rows), m)
		if u.Rows == nil {
			for r := range index {
				index[r] = uint32(r)
			}
		} else {
			copy(index, u.Rows)
		}
		copy(unsafe.Slice((*byte)(values), m*size), u.Data)
	}
	return count
}

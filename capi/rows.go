package main

/*
#include "malt.h"
*/
import "C"

import (
	"context"
	"unsafe"

	"malt/libmalt"
)

// idList reads ids, as rowList does rows.
func idList(p *C.uint64_t, n uint64, what string) ([]uint64, error) {
	switch {
	case p == nil && n == 0:
		return nil, nil
	case p == nil:
		return nil, badArgument("%s is NULL, but their number is %d", what, n)
	case n > maxBytes/8:
		return nil, badArgument("%d %s; the limit is %d", n, what, uint64(maxBytes/8))
	}
	return unsafe.Slice((*uint64)(p), n), nil // of length 0: not nil
}

// rowList reads the rows of a scatter: nil where C says nothing about them. They
// stay the caller's: libmalt has read them when the call returns.
func rowList(p *C.int64_t, n C.uint64_t) ([]int64, error) {
	switch {
	case p == nil && n == 0:
		return nil, nil
	case p == nil:
		return nil, badArgument("rows is NULL, but nrows is %d", n)
	case n == 0:
		return []int64{}, nil
	case n > maxBytes/8:
		return nil, badArgument("%d rows; the limit is %d", n, uint64(maxBytes/8))
	}
	return unsafe.Slice((*int64)(p), int(n)), nil
}

//export maltGoVectorWanted
func maltGoVectorWanted(h C.malt_handle, rows *unsafe.Pointer, missing **C.uint8_t, n *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	o, err := exchanging(h, kindVector)
	if err == nil {
		err = required(rows, "rows")
	}
	if err == nil {
		err = required(missing, "missing")
	}
	if err == nil {
		var values, marks []byte
		var count int
		if values, marks, count, err = o.vector.Wanted(); err == nil {
			*rows = unsafe.Pointer(unsafe.SliceData(values))
			*missing = (*C.uint8_t)(unsafe.SliceData(marks))
			if n != nil {
				*n = C.uint64_t(count)
			}
		}
	}
	return fail(err)
}

//export maltGoVectorConfigureRows
func maltGoVectorConfigureRows(h C.malt_handle, ids *C.uint64_t, n C.uint64_t, wants *C.uint64_t, nwants C.uint64_t, timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	rows, err := idList(ids, uint64(n), "ids")
	if err != nil {
		return fail(err)
	}
	wanted, err := idList(wants, uint64(nwants), "wants")
	if err != nil {
		return fail(err)
	}
	return fail(onVector(h, timeoutMs, func(ctx context.Context, v *libmalt.Vector) error {
		return v.ConfigureRows(ctx, rows, wanted)
	}))
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

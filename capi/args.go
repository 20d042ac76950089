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

const (
	// Bounds of strings from C: one that has no final 0 within them is an error. A word
	// is a name, a fold or the like; a graph, or options with one, is as lists, which
	// take some 6 bytes an edge; a note is shown to a person.
	maxWord  = 4 << 10
	maxGraph = 64 << 20
	maxNote  = 1 << 20
	// maxList bounds lists of ranks and arrays, which the caller counts.
	maxList = 1 << 20
	// maxBytes bounds one object: beyond it a length is a slip of the caller's
	// (a negative number, say), not a wish.
	maxBytes = 1 << 46
)

// folds are names that training loops pass in each call: reading one allocates
// nothing.
var folds = map[string]string{
	"mean": "mean", "mean-received": "mean-received", "sum": "sum", "min": "min", "max": "max", "replace": "replace",
}

// args reads the arguments of a call from C. err is what is wrong with the first that is wrong; then
// nothing that was read counts.
type args struct{ err error }

// is tells whether all is well, with err too.
func (a *args) is(err error) bool {
	if a.err == nil {
		a.err = err
	}
	return a.err == nil
}

// text reads the string argument called what, of at most so many bytes. NULL is "".
func (a *args) text(p *C.char, what string, most int) string {
	if p == nil {
		return ""
	}
	for n := range most {
		if *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) == 0 {
			if known, ok := folds[string(unsafe.Slice((*byte)(unsafe.Pointer(p)), n))]; ok {
				return known
			}
			return C.GoStringN(p, C.int(n))
		}
	}
	a.is(badArgument("%s is longer than %d bytes", what, most-1).Try("Shorten it. In C, end it with a 0."))
	return ""
}

// labels reads the name and the options of an object to be made.
func (a *args) labels(name, options *C.char) (n, o string) {
	return a.text(name, "name", maxWord), a.text(options, "options", maxGraph)
}

// op reads the name of a reduction over all ranks, which has no default.
func (a *args) op(p *C.char) string {
	if p == nil {
		a.is(badArgument("op is NULL: expected mean, sum, min or max"))
	}
	return a.text(p, "op", maxWord)
}

// ranks reads the n ranks at p. nil, which is not the empty list, stands for
// NULL. That they are ranks, and different ones, is for libmalt to say.
func (a *args) ranks(p *C.int32_t, n C.uint32_t, what string) []int {
	switch {
	case p == nil && n == 0:
		return nil
	case p == nil:
		a.is(badArgument("%s is NULL, but its length is %d", what, n).Try("To mean all of them, pass NULL and 0."))
		return nil
	case n > maxList:
		a.is(badArgument("%s has %d entries; the limit is %d", what, n, maxList))
		return nil
	}
	ranks := make([]int, n)
	for i, r := range unsafe.Slice(p, n) {
		ranks[i] = int(r)
	}
	return ranks
}

// rows reads the rows of a scatter, as ids does ids.
func (a *args) rows(p *C.int64_t, n C.uint64_t) []int64 {
	return eights[int64](a, unsafe.Pointer(p), uint64(n), "rows")
}

// ids reads the ids of rows: nil where C says nothing about them. They stay the caller's: libmalt
// has read them when the call returns.
func (a *args) ids(p *C.uint64_t, n uint64, what string) []uint64 {
	return eights[uint64](a, unsafe.Pointer(p), n, what)
}

func eights[T int64 | uint64](a *args, p unsafe.Pointer, n uint64, what string) []T {
	switch {
	case p == nil && n == 0:
	case p == nil:
		a.is(badArgument("%s is NULL, but their number is %d", what, n))
	case n > maxBytes/8:
		a.is(badArgument("%d %s; the limit is %d", n, what, uint64(maxBytes/8)))
	default:
		return unsafe.Slice((*T)(p), n) // of length 0: not nil
	}
	return nil
}

// memory is the n bytes at p, which belong to the caller.
func (a *args) memory(p unsafe.Pointer, n uint64, what string) []byte {
	switch {
	case n == 0:
		return []byte{}
	case p == nil:
		a.is(badArgument("%s is NULL, but its length is %d bytes", what, n))
		return nil
	case n > maxBytes:
		a.is(badArgument("%s has %d bytes; the limit is %d", what, n, uint64(maxBytes)))
		return nil
	}
	return unsafe.Slice((*byte)(p), int(n))
}

// elements is the size of count elements of an array called what, and their type.
func (a *args) elements(count C.uint64_t, dtype C.int32_t, what string) (uint64, libmalt.DType) {
	dt, size, err := dtypeOf(dtype, what)
	if a.is(err) && uint64(count) > maxBytes/size {
		a.is(badArgument("%s has %d elements; the limit is %d", what, count, maxBytes/size))
	}
	return uint64(count) * size, dt
}

// object is the vector or segment of a handle, as which k allows.
func (a *args) object(h C.malt_handle, k kind) *object {
	o, err := exchanging(h, k)
	a.is(err)
	return o
}

// job is the world that this process has joined.
func (a *args) job() *libmalt.World {
	w, err := job()
	a.is(err)
	return w
}

// inJob runs a call that may wait, with the C argument timeout_ms.
func (a *args) inJob(timeoutMs C.int64_t, call func(context.Context, *libmalt.World) error) C.malt_status {
	w := a.job()
	if a.err != nil {
		return fail(a.err)
	}
	ctx := jobDeadlines.within(int64(timeoutMs), w.Timeout())
	defer jobDeadlines.end(ctx)
	return fail(call(ctx, w))
}

// on runs a call that may wait on a vector or segment.
func (a *args) on(h C.malt_handle, k kind, timeoutMs C.int64_t, call func(context.Context, *object) error) C.malt_status {
	o := a.object(h, k)
	if a.err != nil {
		return fail(a.err)
	}
	ctx := o.deadlines.within(int64(timeoutMs), o.world.Timeout())
	defer o.deadlines.end(ctx)
	return fail(call(ctx, o))
}

// onVector runs a call that may wait on a vector.
func (a *args) onVector(h C.malt_handle, timeoutMs C.int64_t, call func(context.Context, *libmalt.Vector) error) C.malt_status {
	return a.on(h, kindVector, timeoutMs, func(ctx context.Context, o *object) error { return call(ctx, o.vector) })
}

// look stores what an object says of itself where C wants it.
func look[T any](h C.malt_handle, k kind, out *T, what string, says func(*object) T) C.malt_status {
	var a args
	if o := a.object(h, k); a.is(required(out, what)) {
		*out = says(o)
	}
	return fail(a.err)
}

// dtypeOf is the element type of what has it, and its size.
func dtypeOf(dtype C.int32_t, what string) (libmalt.DType, uint64, error) {
	switch dtype {
	case C.MALT_FLOAT32:
		return libmalt.Float32, 4, nil
	case C.MALT_FLOAT64:
		return libmalt.Float64, 8, nil
	}
	return 0, 0, badArgument("%s has element type %d: expected MALT_FLOAT32 (%d) or MALT_FLOAT64 (%d)",
		what, dtype, C.MALT_FLOAT32, C.MALT_FLOAT64)
}

// required fails if a pointer that a result goes to is NULL.
func required[T any](p *T, what string) error {
	if p == nil {
		return badArgument("%s is NULL: it must point to where the result goes", what)
	}
	return nil
}

// putText copies s with a final 0 to the cap bytes at p, cutting it if need be,
// and tells what the whole takes.
func putText(s string, p *C.char, capacity C.uint64_t, need *C.uint64_t) error {
	if p == nil && capacity > 0 {
		return badArgument("text is NULL, but cap is %d", capacity).Try("Pass cap 0 to get only the length.")
	}
	if need != nil {
		*need = C.uint64_t(len(s) + 1)
	}
	if n := min(uint64(capacity), uint64(len(s)+1)); n > 0 {
		b := unsafe.Slice((*byte)(unsafe.Pointer(p)), n)
		copy(b, s[:n-1])
		b[n-1] = 0
	}
	return nil
}

// putList fills the capacity entries at p from list with put, as far as it
// goes, and tells how many there are.
func putList[S any, D any](list []S, p *D, capacity C.uint32_t, n *C.uint32_t, put func(*D, S)) error {
	if p == nil && capacity > 0 {
		return badArgument("the list is NULL, but cap is %d", capacity).Try("Pass cap 0 to get only the number.")
	}
	if n != nil {
		*n = C.uint32_t(len(list))
	}
	if m := min(int(capacity), len(list)); m > 0 {
		d := unsafe.Slice(p, m)
		for i := range d {
			put(&d[i], list[i])
		}
	}
	return nil
}

func putRank(d *C.int32_t, rank int) { *d = C.int32_t(rank) }

package main

/*
#include "malt.h"
*/
import "C"

import (
	"fmt"
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

// text reads the string argument called what, of at most so many bytes. NULL is "".
func text(p *C.char, what string, most int) (string, error) {
	if p == nil {
		return "", nil
	}
	for n := range most {
		if *(*byte)(unsafe.Add(unsafe.Pointer(p), n)) == 0 {
			if known, ok := folds[string(unsafe.Slice((*byte)(unsafe.Pointer(p)), n))]; ok {
				return known, nil
			}
			return C.GoStringN(p, C.int(n)), nil
		}
	}
	return "", badArgument("%s is longer than %d bytes", what, most-1).Try("Shorten it. In C, end it with a 0.")
}

// opText reads the name of a reduction over all ranks, which has no default.
func opText(p *C.char) (string, error) {
	if p == nil {
		return "", badArgument("op is NULL: expected mean, sum, min or max")
	}
	return text(p, "op", maxWord)
}

// rankList reads the n ranks at p. nil, which is not the empty list, stands for
// NULL. That they are ranks, and different ones, is for libmalt to say.
func rankList(p *C.int32_t, n C.uint32_t, what string) ([]int, error) {
	switch {
	case p == nil && n == 0:
		return nil, nil
	case p == nil:
		return nil, badArgument("%s is NULL, but its length is %d", what, n).Try("To mean all of them, pass NULL and 0.")
	case n > maxList:
		return nil, badArgument("%s has %d entries; the limit is %d", what, n, maxList)
	}
	ranks := make([]int, n)
	for i, r := range unsafe.Slice(p, n) {
		ranks[i] = int(r)
	}
	return ranks, nil
}

// memory is the n bytes at p, which belong to the caller.
func memory(p unsafe.Pointer, n uint64, what string) ([]byte, error) {
	switch {
	case n == 0:
		return []byte{}, nil
	case p == nil:
		return nil, badArgument("%s is NULL, but its length is %d bytes", what, n)
	case n > maxBytes:
		return nil, badArgument("%s has %d bytes; the limit is %d", what, n, uint64(maxBytes))
	}
	return unsafe.Slice((*byte)(p), int(n)), nil
}

// typed is the count elements of type dtype at p, as bytes.
func typed(p unsafe.Pointer, count uint64, dtype C.int32_t, what string) ([]byte, libmalt.DType, error) {
	dt, size, err := dtypeOf(dtype, "%s", what)
	if err != nil {
		return nil, 0, err
	}
	if count > maxBytes/size {
		return nil, 0, badArgument("%s has %d elements; the limit is %d", what, count, uint64(maxBytes/size))
	}
	b, err := memory(p, count*size, what)
	return b, dt, err
}

// dtypeOf is the element type of what the format names, and its size.
func dtypeOf(dtype C.int32_t, format string, args ...any) (libmalt.DType, uint64, error) {
	switch dtype {
	case C.MALT_FLOAT32:
		return libmalt.Float32, 4, nil
	case C.MALT_FLOAT64:
		return libmalt.Float64, 8, nil
	}
	return 0, 0, badArgument("%s has element type %d: expected MALT_FLOAT32 (%d) or MALT_FLOAT64 (%d)",
		fmt.Sprintf(format, args...), dtype, C.MALT_FLOAT32, C.MALT_FLOAT64)
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

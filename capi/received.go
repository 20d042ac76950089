package main

/*
#include <stdlib.h>
#include "malt_internal.h"
*/
import "C"

import (
	"sync"
	"unsafe"

	"malt/internal/say"
	"malt/libmalt"
)

// received is what the last malt_allgather or malt_broadcast brought, in memory
// of malloc, since C keeps the pointers.
type received struct {
	mu    sync.Mutex
	parts []part // by rank; nil when nothing was received
}

// part is what one rank sent. present is false for ranks that the call was not
// about.
type part struct {
	data    unsafe.Pointer
	bytes   int
	present bool
}

// everyRank, in place of a rank, is all of them.
const everyRank = -1

// set replaces what was received by copies of all, or of that of only.
func (r *received) set(all [][]byte, only int) error {
	parts := make([]part, len(all))
	for i, b := range all {
		if only != everyRank && i != only || b == nil {
			continue
		}
		p := C.maltc_alloc(C.size_t(max(len(b), 1)))
		if p == nil {
			free(parts)
			return say.Errorf(libmalt.ErrNoMemory, "not enough memory for the %d bytes that rank %d sent", len(b), i).More("out-of-memory")
		}
		copy(unsafe.Slice((*byte)(p), len(b)), b)
		parts[i] = part{p, len(b), true}
	}
	r.replace(parts)
	return nil
}

// clear forgets what was received.
func (r *received) clear() { r.replace(nil) }

func (r *received) replace(parts []part) {
	r.mu.Lock()
	old := r.parts
	r.parts = parts
	r.mu.Unlock()
	free(old)
}

func free(parts []part) {
	for _, p := range parts {
		C.free(p.data)
	}
}

// from is what came from rank.
func (r *received) from(rank int) (unsafe.Pointer, int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.parts == nil {
		return nil, 0, say.Errorf(libmalt.ErrState, "nothing was received").Try("Call malt_allgather or malt_broadcast first.")
	}
	if rank < 0 || rank >= len(r.parts) {
		return nil, 0, badArgument("rank %d: expected 0 to %d", rank, len(r.parts)-1)
	}
	p := r.parts[rank]
	if !p.present {
		return nil, 0, say.Errorf(libmalt.ErrState, "nothing came from rank %d: it has died, or the last call was a malt_broadcast of another root", rank)
	}
	return p.data, p.bytes, nil
}

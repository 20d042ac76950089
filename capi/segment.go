package main

/*
#include "malt_internal.h"
*/
import "C"

import (
	"context"

	"malt/libmalt"
)

//export maltGoSegmentNew
func maltGoSegmentNew(bytes C.uint64_t, name, options C.maltc_text, timeoutMs C.int64_t, out *C.malt_handle) (status C.malt_status) {
	defer caught(&status)
	a := args{required(out, "out")}
	if bytes > maxBytes {
		a.is(badArgument("a segment of %d bytes; the limit is %d", bytes, uint64(maxBytes)))
	}
	label, opts := a.labels(name, options)
	return a.inJob(timeoutMs, func(ctx context.Context, w *libmalt.World) error {
		s, err := w.NewSegment(ctx, int(bytes), label, opts)
		if err == nil {
			*out = C.malt_handle(objects.add(kindSegment, &object{exchanger: s, world: w, segment: s}))
		}
		return err
	})
}

//export maltGoSegmentScatter
func maltGoSegmentScatter(h C.malt_handle, n C.uint64_t, to C.maltc_ranks, nto C.uint32_t, timeoutMs C.int64_t, sent *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	ranks := a.ranks(to, nto, "to")
	return a.on(h, kindSegment, timeoutMs, func(ctx context.Context, o *object) error {
		if size := uint64(len(o.Bytes())); uint64(n) > size {
			return badArgument("scatter of %d bytes from a segment of %d", n, size)
		}
		bytes, err := o.segment.Scatter(ctx, int(n), ranks)
		if err == nil && sent != nil {
			*sent = C.uint64_t(bytes)
		}
		return err
	})
}

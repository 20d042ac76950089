package main

/*
#include "malt_internal.h"
*/
import "C"

import (
	"malt/graphs"
	"malt/internal/say"
)

//export maltGoGraphNew
func maltGoGraphNew(spec C.maltc_text, size C.int32_t, allowDisconnected C.int32_t, out *C.malt_handle) (status C.malt_status) {
	defer caught(&status)
	a := args{required(out, "out")}
	s := a.text(spec, "spec", maxGraph)
	if a.err != nil {
		return fail(a.err)
	}
	g, err := graphs.Parse(s, int(size))
	if err == nil && allowDisconnected == 0 {
		err = g.CheckConnected()
	}
	if err != nil {
		return fail(say.As(errArgument, err))
	}
	*out = C.malt_handle(objects.add(kindGraph, g))
	return C.MALT_OK
}

// graphOf is the graph of a handle.
func graphOf(h C.malt_handle) (*graphs.Graph, error) {
	o, err := objects.get(uint64(h), kindGraph)
	if err != nil {
		return nil, err
	}
	return o.(*graphs.Graph), nil
}

//export maltGoGraphReceivers
func maltGoGraphReceivers(h C.malt_handle, rank C.int32_t, clock C.uint64_t, p *C.int32_t, capacity C.uint32_t, n *C.uint32_t) (status C.malt_status) {
	defer caught(&status)
	g, err := graphOf(h)
	if err == nil && (rank < 0 || int(rank) >= g.Size()) {
		err = badArgument("rank %d of a graph of %d ranks: expected 0 to %d", rank, g.Size(), g.Size()-1)
	}
	if err == nil {
		err = putList(g.Receivers(int(rank), uint64(clock)), p, capacity, n, putRank)
	}
	return fail(err)
}

//export maltGoGraphMeasure
func maltGoGraphMeasure(h C.malt_handle, out *C.malt_graph_measures) (status C.malt_status) {
	defer caught(&status)
	g, err := graphOf(h)
	if err == nil {
		err = required(out, "m")
	}
	if err != nil {
		return fail(err)
	}
	m, err := g.Measure()
	if err != nil {
		return fail(say.As(errArgument, err))
	}
	*out = C.malt_graph_measures{
		size:               C.int32_t(m.Size),
		edges:              C.int32_t(m.Edges),
		degree_min:         C.int32_t(m.DegreeMin),
		degree_max:         C.int32_t(m.DegreeMax),
		diameter:           C.int32_t(m.Diameter),
		second_eigenvalue:  C.double(m.SecondEigenvalue),
		smallest_real_part: C.double(m.SmallestRealPart),
	}
	if m.Connected {
		out.connected = 1
	}
	return C.MALT_OK
}

//export maltGoGraphRender
func maltGoGraphRender(h C.malt_handle, format C.maltc_text, p *C.char, capacity C.uint64_t, need *C.uint64_t) (status C.malt_status) {
	defer caught(&status)
	g, err := graphOf(h)
	a := args{err}
	f := a.text(format, "format", maxWord)
	if a.err != nil {
		return fail(a.err)
	}
	s, err := g.Render(f)
	if err != nil {
		return fail(say.As(errArgument, err))
	}
	return fail(putText(s, p, capacity, need))
}

//export maltGoGraphClose
func maltGoGraphClose(h C.malt_handle) (status C.malt_status) {
	defer caught(&status)
	_, err := graphOf(h)
	if err == nil && !objects.remove(uint64(h)) {
		err = &handleError{uint64(h), kindGraph} // another thread was faster
	}
	return fail(err)
}

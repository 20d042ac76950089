//go:build explore

package hosts

import (
	"malt/libmalt/exchange"
	"malt/libmalt/internal/core"
	"malt/rdma"
)

// This file is for the exploration in libmalt.

// Words is how many words each rank has in the memory of its host.
const Words = words

// Planned is a route without memory, which takes so many bytes besides the array.
func Planned(o core.Boxed, plan exchange.Plan, h core.Hosts) (r *Route, scratch int) {
	r = planned(o, plan, h)
	return r, r.scratchBytes()
}

// Marks tells whether some host has several ranks, so that there are words between hosts.
func (r *Route) Marks() bool { return len(r.lowest) > 0 }

// On puts the route on existing memory and boxes.
func (r *Route) On(near rdma.Shared, words rdma.Words, x *exchange.Exchange) {
	r.near, r.words, r.exchange = near, words, x
}

// State is what the steps of a sync depend on, and the exchange, on which they do, too.
func (r *Route) State() (state []any, x *exchange.Exchange) {
	o := &r.sync
	var weights []float64
	for _, t := range o.terms {
		weights = append(weights, t.Weight)
	}
	return []any{o.clock, o.begun, o.stepped, o.done, o.copied, o.aborted, o.passed, o.sent, weights, r.completed}, r.exchange
}

// Last is the clock of the last sync, and whether the array has its result.
func (r *Route) Last() (clock uint64, done bool) { return r.sync.clock, r.sync.copied }

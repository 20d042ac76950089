package hosts

import (
	"context"
	"errors"

	"malt/libmalt/exchange"
	"malt/libmalt/internal/core"
	"malt/libmalt/narrow"
	"malt/libmalt/reduce"
	"malt/rdma"
)

// Route is the route of one vector, and its last sync.
type Route struct {
	core.BoxesOnly // for what it does not need

	o        core.Boxed
	rank     int
	hosts    core.Hosts
	name     string
	wire     narrow.Kind
	exchange *exchange.Exchange
	near     rdma.Shared     // arrays of this host, each with its scratch
	mapped   bool            // near is
	words    rdma.Words      // nil if each host has one rank
	ranks    []int           // of this host
	lowest   []int           // of each host of several ranks
	scratch  map[int][]piece // of each rank of this host, if there are several
	moved    []int           // by rank: bytes that a sync moves to it, and back

	sync      sync
	completed uint64 // clock of the last sync whose result the array has got
	adder     reduce.Adder
}

var _ core.Route = (*Route)(nil)

// piece is bytes of the array, and where they are in a rank's scratch.
type piece struct{ lo, hi, at int }

// Words of a host, and of all.
const (
	wordStep   = iota // 2e-1: arrived at clock e; 2e: the scratch has what the host needs
	wordOp            // its reduce.Op; wordStep releases it
	wordWeight        // the bits of its float64 weight; wordStep releases them
	words

	wordDone = 0 // e: all ranks of this host have step 2e
)

// asInsurance is the tag of an update that decides nothing.
const asInsurance = 1

// Pays tells whether hosts of so many ranks each average so many bytes by an exchange.
func Pays(bytes int, counts []int) bool {
	hosts, first := make([][]int, len(counts)), 0
	for h, n := range counts {
		for range n {
			hosts[h] = append(hosts[h], first)
			first++
		}
	}
	return exchange.NewPlan(bytes, core.CutBytes, hosts).Pays()
}

// New makes the memory of an array of so many bytes and publishes its exchange, in which they
// travel as wire says. nil: the array is too small for one.
func New(o core.Boxed, hosts core.Hosts, bytes int, wire narrow.Kind) (*Route, error) {
	plan := exchange.NewPlan(bytes, core.CutBytes, hosts.Ranks)
	if plan.Format = (narrow.Format{Kind: wire, Wide: o.Runs()[0].Type.Size()}); !plan.Pays() {
		return nil, nil
	}
	r := planned(o, plan, hosts)
	r.name = o.BoxName()
	var err error
	if r.near, err = o.Transport().Share(r.name, bytes+r.scratchBytes(), words); err != nil {
		return nil, err
	}
	if r.exchange, err = exchange.Publish(context.Background(), o.Transport(), r.name, plan, r.rank); err != nil {
		own := r.Memory()
		_ = r.near.Close() // there is an error to tell already
		_ = o.Transport().Unmap(own)
		return nil, err
	}
	return r, nil
}

// planned is a route whose scratch is laid out: the ranks of a host find in it what each
// of them has received.
func planned(o core.Boxed, plan exchange.Plan, h core.Hosts) *Route {
	rank := o.Rank()
	r := &Route{o: o, rank: rank, hosts: h, wire: plan.Format.Kind, ranks: h.Ranks[h.Of[rank]], scratch: map[int][]piece{}, moved: make([]int, len(h.Of))}
	for _, s := range plan.Segments {
		n, handler := s.Hi-s.Lo, s.By[h.Of[rank]]
		for _, near := range r.ranks {
			if near == handler || handler == rank {
				r.moved[near] += n
			}
		}
		for _, far := range s.By {
			if handler == rank && h.Of[far] != h.Of[rank] && (s.Owner() == far || s.Owner() == rank) {
				r.moved[far] += plan.Sent(n)
			}
		}
	}
	for _, ranks := range h.Ranks {
		if len(ranks) > 1 {
			r.lowest = append(r.lowest, ranks[0])
		}
	}
	if len(r.ranks) == 1 {
		return r
	}
	bytes := 0
	for _, s := range plan.Segments {
		bytes = max(bytes, s.Hi)
	}
	for _, s := range plan.Segments {
		handler := s.By[h.Of[rank]]
		at := bytes
		if n := len(r.scratch[handler]); n > 0 {
			last := r.scratch[handler][n-1]
			at = last.at + last.hi - last.lo
		}
		r.scratch[handler] = append(r.scratch[handler], piece{s.Lo, s.Hi, at})
	}
	return r
}

// scratchBytes is the most that any rank of this host needs: all have the same layout.
func (r *Route) scratchBytes() (most int) {
	for _, pieces := range r.scratch {
		n := 0
		for _, p := range pieces {
			n += p.hi - p.lo
		}
		most = max(most, n)
	}
	return most
}

// whole tells whether all ranks take part, as far as this one has noticed.
func (r *Route) whole() bool { return len(r.o.View().Ranks) == r.o.Size() }

func (r *Route) Memory() []byte     { return r.near.Bytes(r.rank) }
func (r *Route) Moved(rank int) int { return r.moved[rank] }

// Join does without where a rank has died that the job goes on without: then the route is
// not taken. After an error it may be called again: where others have done their part they do it
// only once.
func (r *Route) Join(ctx context.Context) error {
	if r.o.Adopt(); !r.whole() {
		return nil
	}
	if !r.mapped {
		if err := r.near.Join(ctx); err != nil {
			return err
		}
		r.mapped = true
	}
	if len(r.lowest) > 0 && r.words == nil {
		w, err := r.o.Transport().Words(ctx, r.name+"/done", 1)
		if err != nil {
			return err
		}
		r.words = w
	}
	return r.exchange.Join(ctx)
}

func (r *Route) Close() error {
	err := errors.Join(r.exchange.Close(), r.near.Close())
	if r.words != nil {
		err = errors.Join(err, r.words.Close())
	}
	return err
}

package libmalt

import (
	"context"
	"errors"

	"malt/libmalt/exchange"
	"malt/rdma"
)

// Between hosts a sync of a vector that all send to all in lock-step need not send
// N-1 copies: each host adds up what its ranks have, in memory that they share, and
// hosts exchange shares (package exchange). It comes to the bits that boxes give,
// so a rank may go either way; what all must agree on is whose values are in it.
//
// What it needs is here; a sync, its steps and why they agree are in exchanging.go.
type across struct {
	exchange *exchange.Exchange
	near     rdma.Shared     // arrays of this host, each with its scratch
	words    rdma.Words      // nil where each host has one rank
	ranks    []int           // of this host
	lowest   []int           // of each host of several ranks
	scratch  map[int][]piece // of each rank of this host, where there are several
	moved    []int           // by rank: bytes that pass to it in a sync, and back
}

// piece is bytes of the array, and where they are in a rank's scratch.
type piece struct{ lo, hi, at int }

// Words of a host, and of all.
const (
	acrossStep   = iota // 2e-1: arrived at clock e; 2e: what the host needs is in the scratch
	acrossOp            // its reduce.Op, stored before its arrival
	acrossWeight        // bits of its float64 weight, too
	acrossWords

	acrossDone = 0 // e: all ranks of this host have step 2e
)

// asInsurance is the tag of an update that decides nothing.
const asInsurance = 1

// shareAcross makes the memory of a vector of so many bytes, and publishes its
// exchange; nil where its mode, or its size, is not for that.
func (s *Segment) shareAcross(bytes int) (*across, error) {
	w := s.w
	if s.kind != "vector" || len(w.hosts.ranks) < 2 || s.mode.representation != dense || !s.mode.everyone(w.size) {
		return nil, nil
	}
	plan := exchange.NewPlan(bytes, cutBytes, w.hosts.ranks)
	if !plan.Pays() {
		return nil, nil
	}
	a := newAcross(plan, &w.hosts, w.rank)
	var err error
	if a.near, err = w.t.Share(s.boxName(), bytes+a.scratchBytes(), acrossWords); err != nil {
		return nil, err
	}
	if a.exchange, err = exchange.Publish(context.Background(), w.t, s.boxName(), plan, w.rank); err != nil {
		own := a.near.Bytes(w.rank)
		return nil, firstOf(err, a.near.Close(), w.t.Unmap(own))
	}
	return a, nil
}

// newAcross plans the scratch: the ranks of a host find in it what one of them has
// got.
func newAcross(plan exchange.Plan, h *hosts, rank int) *across {
	a := &across{ranks: h.ranks[h.of[rank]], scratch: map[int][]piece{}, moved: make([]int, len(h.of))}
	for _, s := range plan.Segments {
		n, mine := s.Hi-s.Lo, s.By[h.of[rank]]
		for _, r := range a.ranks {
			if r == mine || mine == rank {
				a.moved[r] += n
			}
		}
		for _, r := range s.By {
			if mine == rank && h.of[r] != h.of[rank] && (s.Owner() == r || s.Owner() == rank) {
				a.moved[r] += n
			}
		}
	}
	for _, ranks := range h.ranks {
		if len(ranks) > 1 {
			a.lowest = append(a.lowest, ranks[0])
		}
	}
	if len(a.ranks) == 1 {
		return a
	}
	bytes := 0
	for _, s := range plan.Segments {
		bytes = max(bytes, s.Hi)
	}
	for _, s := range plan.Segments {
		r := s.By[h.of[rank]]
		at := bytes
		if n := len(a.scratch[r]); n > 0 {
			last := a.scratch[r][n-1]
			at = last.at + last.hi - last.lo
		}
		a.scratch[r] = append(a.scratch[r], piece{s.Lo, s.Hi, at})
	}
	return a
}

// scratchBytes is as much as any rank of this host needs: all share alike.
func (a *across) scratchBytes() (most int) {
	for _, pieces := range a.scratch {
		n := 0
		for _, p := range pieces {
			n += p.hi - p.lo
		}
		most = max(most, n)
	}
	return most
}

// join connects it with the others.
func (a *across) join(ctx context.Context, t rdma.Transport, name string) error {
	err := a.near.Join(ctx)
	if err == nil && len(a.lowest) > 0 {
		a.words, err = t.Words(ctx, name+"/done", 1)
	}
	if err == nil {
		err = a.exchange.Join(ctx)
	}
	return err
}

// close leaves it; the memory stays.
func (a *across) close() error {
	err := errors.Join(a.exchange.Close(), a.near.Close())
	if a.words != nil {
		err = errors.Join(err, a.words.Close())
	}
	return err
}

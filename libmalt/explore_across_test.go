//go:build explore

package libmalt

import (
	"encoding/binary"
	"math"
	"testing"

	"malt/internal/explore"
	"malt/libmalt/consistency"
	"malt/libmalt/exchange"
	"malt/libmalt/reduce"
	"malt/rdma"
	"malt/rdma/explored"
)

// Averages across hosts, in every interleaving: of what goes through boxes, and of
// the words of hosts and of all. The letters are those of explore_inplace_test.go.
// That all ranks take the same way at each clock is part of what is held against each
// other.

// hosts are those of a play.
func (p *play) hosts() (h hosts) {
	for r, host := range p.host {
		if host == len(h.ranks) {
			h.ranks = append(h.ranks, nil)
		}
		h.ranks[host] = append(h.ranks[host], r)
		h.of = append(h.of, host)
	}
	return h
}

// shareAcross gives the actors a vector of so many lines for each of them, which that
// rank owns: as many chunks.
func shareAcross(x *explore.Exec, job *explored.Job, all []*actor, lines int) {
	bytes := len(all) * lines * cutBytes
	h := &all[0].w.hosts
	plan := exchange.NewPlan(bytes, cutBytes, h.ranks)
	size := bytes
	for _, a := range all {
		a.s.across = newAcross(plan, h, a.w.rank)
		size = max(size, bytes+a.s.across.scratchBytes())
	}
	near := job.Shared("near", size, acrossWords, -1)
	var words []rdma.Words
	if len(all[0].s.across.lowest) > 0 {
		words = job.Words("done", 1)
	}
	type end struct {
		box            string
		sender, reader int
	}
	inboxes := map[end]rdma.Inbox{}
	for r, a := range all {
		v := a.v
		v.across.near = near[r]
		if words != nil {
			v.across.words = words[r]
		}
		v.kind, v.data = "vector", near[r].Bytes(r)[:bytes:bytes]
		v.base, v.ch.everyone = &v.data[0], v.mode.consistency.Kind == consistency.BSP
		v.runs = []run{{reduce.Float64, 0, bytes}}
		v.across.exchange = exchange.New(plan, r)
		err := v.across.exchange.Send(func(box string, spec rdma.Spec, readers []int) (rdma.Outbox, error) {
			out, in, err := job.Box(r, spec, readers)
			for i, reader := range readers {
				inboxes[end{box, r, reader}] = in[i]
			}
			return out, err
		})
		if err != nil {
			panic(err)
		}
	}
	for r, a := range all {
		err := a.s.across.exchange.Receive(func(box string, _ rdma.Spec, senders []int) (ins []rdma.Inbox, err error) {
			for _, s := range senders {
				ins = append(ins, inboxes[end{box, s, r}])
			}
			return ins, nil
		})
		if err != nil {
			panic(err)
		}
	}
}

// exchanged is what the steps of an exchange depend on.
func (a *actor) exchanged() []any {
	o := &a.v.syncing
	e := &o.exchange
	return []any{
		o.stage, e.clock, e.begun, e.step2, e.done, e.copied, e.boxes, e.sent, a.play.terms(e),
		explore.Ignore{State: a.s.across.exchange, Fields: []string{"busy", "look", "payload", "parts"}},
	}
}

// terms are the weights that an exchange was begun with.
func (p *play) terms(e *exchanging) (weights []float64) {
	for _, t := range e.terms {
		weights = append(weights, t.weight)
	}
	return weights
}

// byHost is the fold of the values of a set of ranks, host by host.
func (a *actor) byHost(set byte) float64 {
	var sums adder
	for _, ranks := range a.w.hosts.ranks {
		sums.terms = sums.terms[:0]
		for _, r := range ranks {
			if set&(1<<r) != 0 {
				value := binary.LittleEndian.AppendUint64(nil, math.Float64bits(valueOf(r, a.s.Clock())))
				sums.terms = append(sums.terms, subtotal{value, 1, weightOf(r, a.s.Clock())})
			}
		}
		switch len(sums.terms) {
		case 0:
		case 1:
			sums.parts = append(sums.parts, sums.terms[0])
		default:
			sums.parts = append(sums.parts, sums.ofHost(a.v.mode.fold, []run{{reduce.Float64, 0, 8}}, 0, make([]byte, 8)))
		}
	}
	dst := make([]byte, 8)
	sums.ofAll(a.v.mode.fold, []run{{reduce.Float64, 0, 8}}, 0, dst)
	return math.Float64frombits(binary.LittleEndian.Uint64(dst))
}

func TestExploreAcross(t *testing.T) {
	// What ranks of one host do among themselves is searched without another host. With
	// three ranks, and where two chunks are given up, all interleavings are too many: of
	// these cases those with few preemptions are searched.
	one, same, three := []int{0, 1}, []int{0, 0}, []int{0, 0, 1}
	for _, c := range []struct {
		name  string
		large bool
		play
	}{
		{"two hosts", false, play{"", []string{"i", "i"}, 0, false, one}},
		{"two hosts, twice", true, play{"", []string{"ii", "ii"}, 0, false, one}},
		{"two chunks", true, play{"lines=2", []string{"i", "i"}, 0, false, one}},
		{"two chunks, given up", true, play{"lines=2 preemptions=3", []string{"xi", "ii"}, 0, false, one}},
		{"a death", true, play{"", []string{"i", "i"}, 1, false, one}},
		{"given up", false, play{"", []string{"x", "i"}, 0, false, one}},
		{"given up for good", false, play{"", []string{"X", "i"}, 0, false, one}},
		{"given up, then another", true, play{"", []string{"xi", "ii"}, 0, false, one}},
		{"both given up", true, play{"", []string{"x", "x"}, 0, false, one}},
		{"kept", true, play{"", []string{"ki", "i"}, 0, false, one}},
		{"kept, barrier", true, play{"", []string{"kbi", "ib"}, 0, false, one}},
		{"closed while kept", true, play{"", []string{"kcw", "i"}, 0, false, one}},
		{"one scatters by itself", false, play{"", []string{"i", "s"}, 0, false, one}},
		{"one scatters to nobody", false, play{"", []string{"i", "e"}, 0, false, one}},
		{"different folds", false, play{"", []string{"a", "i"}, 0, false, one}},
		{"uneven", false, play{"", []string{"", "i"}, 0, false, one}},
		{"within a host", false, play{"", []string{"i", "i"}, 0, false, same}},
		{"within a host, a death", true, play{"", []string{"i", "i"}, 1, false, same}},
		{"within a host, given up for good", false, play{"", []string{"X", "i"}, 0, false, same}},
		{"within a host, given up", true, play{"", []string{"x", "i"}, 0, false, same}},
		{"within a host, given up by the other", true, play{"", []string{"i", "x"}, 0, false, same}},
		{"within a host, kept", true, play{"", []string{"ki", "i"}, 0, false, same}},
		{"within a host, one scatters to nobody", false, play{"", []string{"i", "e"}, 0, false, same}},
		{"within a host, uneven", false, play{"", []string{"", "i"}, 0, false, same}},
		{"two ranks and one", false, play{"preemptions=1", []string{"i", "i", "i"}, 0, false, three}},
		{"two ranks and one, uneven", false, play{"preemptions=1", []string{"i", "i", ""}, 0, false, three}},
		{"two ranks and one, which scatters to nobody", false, play{"preemptions=1", []string{"i", "i", "e"}, 0, false, three}},
		{"two ranks and one, a death", true, play{"preemptions=1", []string{"i", "i", "i"}, 1, false, three}},
		{"two ranks and one, stopped twice", true, play{"preemptions=2", []string{"i", "i", "i"}, 0, false, three}},
		{"two ranks and one, given up there", true, play{"preemptions=2", []string{"i", "i", "X"}, 0, false, three}},
		{"two ranks and one, given up by one of two", true, play{"preemptions=2", []string{"i", "X", "i"}, 0, false, three}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if c.large && !large {
				t.Skip("MALT_EXPLORE=big runs this")
			}
			t.Parallel()
			c.play.run(t)
		})
	}
}

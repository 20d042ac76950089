//go:build explore

package libmalt

import (
	"encoding/binary"
	"math"
	"testing"

	"malt/internal/explore"
	"malt/libmalt/exchange"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/route/hosts"
	"malt/rdma"
	"malt/rdma/explored"
)

// Averages across hosts, in every interleaving: of what goes through boxes, and of
// the words of hosts and of all. The letters are those of explore_inplace_test.go.
// That all ranks take the same way at each clock is part of what is held against each
// other.

// hosts are those of a play.
func (p *play) hosts() (h core.Hosts) {
	for r, host := range p.host {
		if host == len(h.Ranks) {
			h.Ranks = append(h.Ranks, nil)
		}
		h.Ranks[host] = append(h.Ranks[host], r)
		h.Of = append(h.Of, host)
	}
	return h
}

// shareAcross gives the actors a vector of so many lines for each of them, which that
// rank owns: as many chunks.
func shareAcross(x *explore.Exec, job *explored.Job, all []*actor, lines int) {
	bytes := len(all) * lines * core.CutBytes
	h := &all[0].w.job.Hosts
	plan := exchange.NewPlan(bytes, core.CutBytes, h.Ranks)
	size := bytes
	for _, a := range all {
		a.b.Of([]reduce.Run{{Type: reduce.Float64, Bytes: bytes}})
		r, scratch := hosts.Planned(a.b.ForRoute(), plan, *h)
		a.b.Route = r
		size = max(size, bytes+scratch)
	}
	near := job.Shared("near", size, hosts.Words, -1)
	var words []rdma.Words
	if all[0].b.Route.(*hosts.Route).Marks() {
		words = job.Words("done", 1)
	}
	type end struct {
		box            string
		sender, reader int
	}
	inboxes := map[end]rdma.Inbox{}
	exchanges := make([]*exchange.Exchange, len(all))
	for r, a := range all {
		v := a.v
		var own rdma.Words
		if words != nil {
			own = words[r]
		}
		v.Kind, v.Data = "vector", near[r].Bytes(r)[:bytes:bytes]
		v.Base = &v.Data[0]
		exchanges[r] = exchange.New(plan, r)
		a.b.Route.(*hosts.Route).On(near[r], own, exchanges[r])
		err := exchanges[r].Send(func(box string, spec rdma.Spec, readers []int) (rdma.Outbox, error) {
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
	for r := range all {
		err := exchanges[r].Receive(func(box string, _ rdma.Spec, senders []int) (ins []rdma.Inbox, err error) {
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
func (a *actor) exchanged(r *hosts.Route) []any {
	state, x := r.State()
	return append(state,
		explore.Ignore{State: x, Fields: []string{"busy", "look", "payload", "parts"}})
}

// byHost is the fold of the values of a set of ranks, host by host.
func (a *actor) byHost(set byte) float64 {
	var sums reduce.Adder
	for _, ranks := range a.w.job.Hosts.Ranks {
		sums.Terms = sums.Terms[:0]
		for _, r := range ranks {
			if set&(1<<r) != 0 {
				value := binary.LittleEndian.AppendUint64(nil, math.Float64bits(valueOf(r, a.s.Clock())))
				sums.Terms = append(sums.Terms, reduce.Subtotal{Data: value, Count: 1, Weight: weightOf(r, a.s.Clock())})
			}
		}
		switch len(sums.Terms) {
		case 0:
		case 1:
			sums.Parts = append(sums.Parts, sums.Terms[0])
		default:
			sums.Parts = append(sums.Parts, sums.AddTerms(a.v.mode.Load().fold, []reduce.Run{{Type: reduce.Float64, Bytes: 8}}, 0, make([]byte, 8)))
		}
	}
	dst := make([]byte, 8)
	sums.FoldParts(a.v.mode.Load().fold, []reduce.Run{{Type: reduce.Float64, Bytes: 8}}, 0, dst)
	return math.Float64frombits(binary.LittleEndian.Uint64(dst))
}

func TestExploreAcross(t *testing.T) {
	t.Parallel()
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
		{"given up, barrier", true, play{"", []string{"K", "ib"}, 0, false, one}},
		{"given up, barrier, others far ahead", false, play{"preemptions=1", []string{"K", "xiib"}, 0, false, one}},
		{"given up and closed", true, play{"", []string{"Xcw", "i"}, 0, false, one}},
		{"one scatters by itself", false, play{"", []string{"i", "s"}, 0, false, one}},
		{"one scatters to nobody", false, play{"", []string{"i", "e"}, 0, false, one}},
		{"different folds", false, play{"", []string{"a", "i"}, 0, false, one}},
		{"uneven", false, play{"", []string{"", "i"}, 0, false, one}},
		{"within a host", false, play{"", []string{"i", "i"}, 0, false, same}},
		{"within a host, a death", true, play{"", []string{"i", "i"}, 1, false, same}},
		{"within a host, given up for good", false, play{"", []string{"X", "i"}, 0, false, same}},
		{"within a host, given up", true, play{"", []string{"x", "i"}, 0, false, same}},
		{"within a host, given up by the other", true, play{"", []string{"i", "x"}, 0, false, same}},
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
		explore.Case(t, c.name, c.large, c.play.run)
	}
}

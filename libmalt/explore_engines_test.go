//go:build explore

package libmalt

import (
	"testing"
	"time"

	"malt/internal/explore"
	"malt/libmalt/butterfly"
	"malt/libmalt/codec"
	"malt/libmalt/engine"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/libmalt/shards"
	"malt/libmalt/spvec"
	"malt/rdma"
	"malt/rdma/explored"
)

// Sums of changes that an engine carries, in every interleaving of small cases; for what the
// ranks do and what is held against them see explore_changes_test.go. There is no goroutine beside
// the loops: a rank passes on what has come in its calls on the vector, in some cases in collective ones, and
// when it leaves.

// ofChanges is such an engine.
type ofChanges interface {
	core.Engine
	// Boxes are what this rank publishes, each with a number, and for whom. Hear gives it
	// that one of another rank.
	Boxes(box func(number int, spec rdma.Spec, readers []int) rdma.Outbox)
	Hear(number int, in rdma.Inbox)
	State() []any
	Beside()
}

// goesOn knows before the ranks begin whether the job goes on when one dies.
type goesOn struct {
	core.Carried
	survives bool
}

func (o goesOn) Survives() bool { return o.survives }

// carried makes v a vector of one number that the engine of its graph carries.
func carried(v *Vector, p *play, all []*actor, log []byte) *actor {
	v.runs = []reduce.Run{{Type: reduce.Float64, Bytes: 8}}
	m := v.mode.Load()
	o := goesOn{core.Carried{M: &v.Member, Layout: v.runs}, p.own(survive) > 0}
	var e ofChanges
	if m.Graph.InStages() {
		e = butterfly.Explored(o, m.Graph, m.fold, 8)
	} else {
		var row spvec.Shape
		if m.sparse == codec.Model {
			row = spvec.Shape{Rows: 1, Width: 1, Elem: 8}
		}
		e = shards.Explored(o, m.Graph, m.fold, 8, row, m.filter)
	}
	b := engine.New(&v.Member, e, m.fold, m.Rule.Slack())
	v.way, v.Body, v.Base, v.Open = b, b, &v.Data[0], true
	v.w.timeout = time.Hour // in which no case is
	v.w.job.Enlist(&v.Member)
	return &actor{w: v.w, v: v, s: &v.Object, e: e, play: p, all: all, log: log}
}

// joinEngines gives all their boxes.
func joinEngines(job *explored.Job, all []*actor) {
	var hear []func()
	for r, a := range all {
		a.e.Boxes(func(number int, spec rdma.Spec, readers []int) rdma.Outbox {
			out, in, err := job.Box(r, spec, readers)
			if err != nil {
				panic(err)
			}
			for i, to := range readers {
				hear = append(hear, func() { all[to].e.Hear(number, in[i]) })
			}
			return out
		})
	}
	for _, f := range hear {
		f()
	}
}

func TestExploreButterfly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		large bool
		play
	}{
		{"one stage", false, play{"consistency=ssp:0 graph=butterfly fold=sum-changes", []string{"SS", "SS"}, 0, false, nil}},
		{"one stage, slack", false, play{"consistency=ssp:1 graph=butterfly fold=sum-changes", []string{"S", "SSS"}, 0, false, nil}},
		{"one stage, a death", false, play{"consistency=ssp:0 graph=butterfly fold=sum-changes", []string{"SS", "SS"}, 1, false, nil}},
		{"one stage, three ranks", false, play{"consistency=ssp:0 graph=butterfly fold=sum-changes preemptions=1", []string{"S", "SS", "S"}, 0, false, nil}},
		{"one stage, away", false, play{"consistency=ssp:0 graph=butterfly fold=sum-changes", []string{"Sb", "Sb"}, 0, false, nil}},
		{"one stage, one is away before", false, play{"consistency=ssp:0 graph=butterfly fold=sum-changes beside=1", []string{"b", "Sb"}, 0, false, nil}},
		{"allreduce", false, play{"consistency=ssp:0 graph=butterfly fold=sum-changes", []string{"ShSw", "ShS"}, 0, false, nil}},
		{"allreduce, slack", false, play{"consistency=ssp:1 graph=butterfly fold=sum-changes", []string{"ShS", "ShS"}, 0, false, nil}},
		{"a timeout", false, play{"consistency=ssp:0 graph=butterfly fold=sum-changes", []string{"TS", "SS"}, 0, false, nil}},
	} {
		explore.Case(t, c.name, c.large, c.play.run)
	}
}

func TestExploreShards(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		large bool
		play
	}{
		{"two ranks", false, play{"consistency=ssp:0 graph=shards fold=sum-changes", []string{"SS", "S"}, 0, false, nil}},
		{"slack", false, play{"consistency=ssp:1 graph=shards fold=sum-changes preemptions=2", []string{"SSS", "SS"}, 0, false, nil}},
		{"a death", false, play{"consistency=ssp:0 graph=shards fold=sum-changes preemptions=2", []string{"S", "S"}, 1, false, nil}},
		{"allreduce, a worker is ahead", false, play{"consistency=ssp:0 graph=shards fold=sum-changes preemptions=2", []string{"h", "hS"}, 0, false, nil}},
		{"allreduce, the keeper is ahead", false, play{"consistency=ssp:0 graph=shards fold=sum-changes beside=1 preemptions=1", []string{"hS", "Sh"}, 0, false, nil}},
		{"allreduce, a sum comes late", false, play{"consistency=async graph=shards fold=sum-changes preemptions=2", []string{"h", "PPhS"}, 0, false, nil}},
		{"away", false, play{"consistency=ssp:0 graph=shards fold=sum-changes preemptions=2", []string{"Sb", "Sb"}, 0, false, nil}},
		{"away, with a change on its way", false, play{"consistency=ssp:0 graph=shards fold=sum-changes beside=1 preemptions=2", []string{"Pb", "Sb"}, 0, false, nil}},
		{"a timeout", false, play{"consistency=ssp:0 graph=shards fold=sum-changes preemptions=2", []string{"S", "TS"}, 0, false, nil}},
		{"rows", false, play{"consistency=async graph=shards sparse=model fold=sum-changes preemptions=2", []string{"P", "PG"}, 0, false, nil}},
		{"rows, allreduce", false, play{"consistency=ssp:0 graph=shards sparse=model fold=sum-changes beside=1 preemptions=1", []string{"hS", "Sh"}, 0, false, nil}},
		{"rows, a filter", false, play{"consistency=ssp:0 graph=shards sparse=model filter=dvf:10 fold=sum-changes preemptions=1", []string{"SSh", "SSh"}, 0, false, nil}},
		{"a worker dies", false, play{"consistency=ssp:0 graph=shards:1 fold=sum-changes survive=1 dies=2 preemptions=1", []string{"SSh", "Sh"}, 1, false, nil}},
		{"a worker dies when it is done", false, play{"consistency=ssp:0 graph=shards:1 fold=sum-changes survive=1 dies=2 preemptions=1", []string{"SS", "S"}, 1, false, nil}},
		{"a worker dies after an allreduce", false, play{"consistency=ssp:0 graph=shards:1 fold=sum-changes survive=1 dies=2 preemptions=1", []string{"Shh", "Shh"}, 1, false, nil}},
		{"one of two workers dies", false, play{"consistency=ssp:0 graph=shards:1 fold=sum-changes survive=1 dies=3 preemptions=-1", []string{"Sh", "SGh", "Sh"}, 1, false, nil}},
		{"rows, a worker dies", false, play{"consistency=async graph=shards:1 sparse=model fold=sum-changes survive=1 dies=2 preemptions=1", []string{"PGh", "Ph"}, 1, false, nil}},
		{"one of two workers dies, in any order", true, play{"consistency=ssp:0 graph=shards:1 fold=sum-changes survive=1 dies=3 preemptions=1", []string{"Sh", "Sh", "SPh"}, 1, false, nil}},
		{"a tree, a death", true, play{"consistency=ssp:0 graph=shards:1/1 fold=sum-changes preemptions=1 dies=2", []string{"", "", "S"}, 1, false, nil}},
		{"a death, in any order", true, play{"consistency=ssp:0 graph=shards fold=sum-changes", []string{"S", "S"}, 1, false, nil}},
		{"allreduce, in any order", true, play{"consistency=ssp:0 graph=shards fold=sum-changes beside=1", []string{"hS", "Sh"}, 0, false, nil}},
		{"a timeout, in any order", true, play{"consistency=ssp:0 graph=shards fold=sum-changes", []string{"S", "TS"}, 0, false, nil}},
		{"a server", true, play{"consistency=ssp:0 graph=shards:1 fold=sum-changes preemptions=1", []string{"", "S", "S"}, 0, false, nil}},
	} {
		explore.Case(t, c.name, c.large, c.play.run)
	}
}

//go:build explore

package libmalt

import (
	"testing"
	"time"

	"malt/libmalt/butterfly"
	"malt/libmalt/engine"
	"malt/libmalt/internal/core"
	"malt/libmalt/reduce"
	"malt/rdma"
	"malt/rdma/explored"
)

// Sums of changes in stages, in every interleaving of small cases; for what the ranks do and
// what is held against them see explore_changes_test.go. There is no goroutine beside the loops: a
// rank passes on what has come in its calls, and when it leaves.

// staged makes v a vector of one number that an engine carries.
func staged(v *Vector, p *play, all []*actor, log []byte) *actor {
	v.runs = []reduce.Run{{Type: reduce.Float64, Bytes: 8}}
	m := v.mode.Load()
	e := butterfly.Explored(core.Carried{M: &v.Member, Layout: v.runs}, m.Graph, m.fold, 8)
	b := engine.New(&v.Member, e, m.fold, m.Rule.Slack())
	v.way, v.Body, v.Base, v.Open = b, b, &v.Data[0], true
	v.w.timeout = time.Hour // in which no case is
	v.w.job.Enlist(&v.Member)
	return &actor{w: v.w, v: v, s: &v.Object, e: e, play: p, all: all, log: log}
}

// joinStages gives all their boxes.
func joinStages(job *explored.Job, all []*actor) {
	var hear []func()
	for r, a := range all {
		a.e.Boxes(func(stage int, spec rdma.Spec, readers []int) rdma.Outbox {
			out, in, err := job.Box(r, spec, readers)
			if err != nil {
				panic(err)
			}
			for i, to := range readers {
				hear = append(hear, func() { all[to].e.Hear(stage, in[i]) })
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
		{"allreduce", false, play{"consistency=ssp:0 graph=butterfly fold=sum-changes", []string{"ShSw", "ShS"}, 0, false, nil}},
		{"allreduce, slack", false, play{"consistency=ssp:1 graph=butterfly fold=sum-changes", []string{"ShS", "ShS"}, 0, false, nil}},
		{"a timeout", false, play{"consistency=ssp:0 graph=butterfly fold=sum-changes", []string{"TS", "SS"}, 0, false, nil}},
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

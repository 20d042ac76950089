package tests

// ofStages are those of sums of changes that go through stages.
var ofStages = []mutation{
	{
		line:   "stages: a rank that is away is waited for before a sum is passed on",
		in:     "libmalt/butterfly.Core.due",
		old:    "$present($first + $i)",
		new:    "first >= 0",
		caught: "TestExploreStages/two_stages,_one_serves", how: "nothing leads to the end",
	},
	{
		line:   "stages: a sum is passed on when this rank has scattered, and not when others have",
		in:     "libmalt/butterfly.Core.due",
		old:    "$least > $before",
		new:    "now[c.rank-first].Clock > sent[c.rank-first].Clock && least >= before",
		caught: "TestExploreStages/two_stages", how: "nothing leads to the end",
	},
	{
		line:   "stages: a gather does not wait",
		in:     "libmalt/butterfly.Core.Late",
		old:    "$at.Clock < $clock && $present($r)",
		new:    "at.Clock < clock && r == c.rank",
		caught: "TestExploreStages/two_stages", how: "after its gather at clock",
	},
	{
		line:   "stages: a gather waits for the ranks of its groups alone",
		in:     "libmalt/butterfly.Core.Late",
		old:    "$at.Clock < $clock && $present($r)",
		new:    "at.Clock < clock && present(r) && c.through(r) == r",
		caught: "TestExploreStages/two_stages,_one_serves", how: "after its gather at clock",
	},
	{
		line:   "stages: a gather waits for ranks that are away",
		in:     "libmalt/butterfly.Core.Late",
		old:    "$at.Clock < $clock && $present($r)",
		new:    "at.Clock < clock",
		caught: "TestExploreStages/two_stages,_one_serves", how: "nothing leads to the end",
	},
	{
		line:   "stages: a rank serves those of its first group alone",
		in:     "libmalt/butterfly.Core.Needed",
		old:    "$last := len($c.stages)-1",
		new:    "last := 0",
		caught: "TestExploreStages/two_stages,_one_serves", how: "nothing leads to the end",
	},
	{
		line:   "stages: a sum has what came in its own stage, too",
		in:     "libmalt/butterfly.Engine.held",
		old:    "$e.In[:$before]",
		new:    "e.In[:min(before+1, len(e.In))]",
		caught: "TestExploreButterfly/one_stage", pkg: "libmalt", how: "times, after",
	},
	{
		line:   "stages: a sum tells the clock of its sender alone, as the printed algorithm does",
		in:     "libmalt/butterfly.Engine.Send",
		old:    "$has.Put($slot[$n:])",
		new:    "reach{Clock: e.core.has[e.O.Rank()].Clock, Scatters: has.Scatters}.Put(slot[n:])",
		caught: "TestG12LawOfASum/ssp:1/one_straggler/4/butterfly:2x2/sum-changes", pkg: "libmalt", how: "changes of rank",
	},
	{
		line:   "stages: sums of another era are added up",
		in:     "libmalt/butterfly.Engine.held",
		old:    "$b.Has && $b.Held.Tag == $e.Era",
		new:    "b.Has",
		caught: "TestExploreButterfly/allreduce,_slack", pkg: "libmalt", how: "times, after",
	},
	{
		line:   "stages: what came of an era before it began here is lost",
		in:     "libmalt/engine.Changes.Settled",
		old:    "$b.Has && $b.Held.Tag == $e.Era",
		new:    "false",
		caught: "TestExploreButterfly/allreduce", pkg: "libmalt", how: "waits for ever",
	},
	{
		line:   "stages: what has come is taken before it is looked which ranks are there",
		in:     "libmalt/engine.Changes.pass",
		old:    "$e.Ranks.Look($e.O)",
		new:    "defer e.Ranks.Look(e.O)",
		caught: "TestExploreButterfly/one_stage,_away", pkg: "libmalt", how: "changes of rank",
	},
	{
		line:   "stages: a clock that a collective call has lifted counts as a change",
		in:     "libmalt/engine.Changes.Level",
		old:    "$e.clocks.Lifted($clock)",
		new:    "e.clocks.Scattered(clock)",
		caught: "TestNewsOfASync", pkg: "libmalt", how: "sync returned",
	},
}

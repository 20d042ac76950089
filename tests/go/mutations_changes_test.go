package tests

// ofChanges are those of sums of changes.
var ofChanges = []mutation{
	{
		line:   "totals of another era are added up",
		in:     "libmalt/boxes.totals.take",
		old:    "$u.Tag < $b.era",
		new:    "false",
		caught: "TestExploreChanges/async,_allreduce", how: "times, after",
	},
	{
		line:   "a new era begins with the totals of the last",
		in:     "libmalt/boxes.totals.settled",
		old:    "$src.release()",
		new:    "",
		caught: "TestExploreChanges/async,_allreduce", how: "times, after",
	},
	{
		line:   "a total that was folded is let go of",
		in:     "libmalt/boxes.Boxes.folded",
		old:    "$b.counting.folded($src)",
		new:    "$src.release()",
		caught: "TestExploreChanges/bsp,_uneven", how: "and has",
	},
	{
		line:   "a dead rank counts up to the clock that it had come to",
		in:     "libmalt/boxes.totals.take",
		old:    "$clock == $own || $clock == $own+1",
		new:    "$clock == $own",
		caught: "TestExploreChanges/bsp,_three_ranks,_a_death,_longer", big: true, how: "has folded the set",
	},
	{
		line:   "the total of a dead rank is lost with its box",
		in:     "libmalt/boxes.Boxes.drop",
		old:    "$b.counting.keep(&$s)",
		new:    "",
		caught: "TestExploreChanges/bsp,_a_death", how: "and has",
	},
	{
		line:   "ranks differ in what they add at a clock",
		in:     "libmalt/boxes.totals.take",
		old:    "$src.inbox.At(own)",
		new:    "$src.inbox.At(clock)",
		caught: "TestExploreChanges/bsp", how: "has folded the set",
	},
	{
		line:   "the last changes do not go with an allreduce",
		in:     "libmalt/codec.changes.Share",
		old:    "$p.totals.Add($p.m.Data, 1, nil)",
		new:    "",
		caught: "TestExploreChanges/ssp,_allreduce", how: "after an allreduce",
	},
	{
		line:   "what a scatter has sent is sent again",
		in:     "libmalt/reduce.Totals.Add",
		old:    "Copy($t.Shadow[lo:hi], now)",
		new:    "",
		caught: "TestExploreChanges/ssp", how: "times, after",
	},
	{
		line:   "what a gather has added counts as a change",
		in:     "libmalt/reduce.Totals.ApplyPart",
		old:    "Copy($t.Shadow[lo:hi], now)",
		new:    "",
		caught: "TestExploreChanges/ssp", how: "times, after",
	},
	{
		line:   "a new era begins with the total of the last",
		in:     "libmalt/reduce.Totals.Renew",
		old:    "clear($t.Sum)",
		new:    "",
		caught: "TestExploreChanges/ssp,_allreduce", how: "times, after",
	},
	{
		line:   "a new era begins with what was kept",
		in:     "libmalt/codec.changes.Settled",
		old:    "clear($p.counts)",
		new:    "",
		caught: "TestExploreChanges/ssp,_allreduce_and_a_death", how: "times, after",
	},
}

package tests

// ofChanges are those of sums of changes.
var ofChanges = []mutation{
	{
		line:   "totals of another era are added up",
		in:     "libmalt/boxes.totals.next",
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
		line:   "the age lacks the last changes of a rank that has gone away",
		in:     "libmalt/boxes.totals.aged",
		old:    "clock > $src.at",
		new:    "clock < src.at",
		caught: "TestExploreChanges/ssp", how: "age 0",
	},
	{
		line:   "a total that was folded is let go of",
		in:     "libmalt/boxes.Boxes.folded",
		old:    "$b.counting.folded($src)",
		new:    "$src.release()",
		caught: "TestExploreChanges/ssp", how: "and has",
	},
	{
		line:   "a dead rank counts up to the clock that it had come to",
		in:     "libmalt/boxes.totals.next",
		old:    "$clock <= $own+1",
		new:    "$clock <= $own",
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
		in:     "libmalt/boxes.totals.next",
		old:    "$src.inbox.At(min(clock, own))",
		new:    "$src.inbox.At(clock)",
		caught: "TestExploreChanges/bsp", how: "has folded the set",
	},
	{
		line:   "ranks differ in what they add of one that has died",
		in:     "libmalt/boxes.totals.next",
		old:    "$src.inbox.At(min(clock, own))",
		new:    "$src.inbox.At(own)",
		caught: "TestExploreChanges/bsp,_three_ranks,_a_death", big: true, how: "has folded the set",
	},
	{
		line: "what a rank sent before it went away is missing",
		in:   "rdma/box.Reader.upTo",
		old: `
			if $last.clock > $clock {
				$r.held = 0
				$r.control.pin($r.me).Store(0)
				return Header{}, false, nil
			}`,
		new: `
			if $last.clock != $clock {
				$r.held = 0
				$r.control.pin($r.me).Store(0)
				return Header{}, false, nil
			}`,
		caught: "TestExploreChanges/bsp,_away,_then_alone", how: "before each", pkg: "libmalt",
	},
	{
		line:   "the last changes do not go with an allreduce",
		in:     "libmalt/codec.changes.Share",
		old:    "$p.totals.Add($p.m.Data, $weight, nil)",
		new:    "",
		caught: "TestExploreChanges/ssp,_allreduce", how: "before each",
	},
	{
		line:   "what no scatter has sent has weight 1",
		in:     "libmalt/codec.changes.Share",
		old:    "$p.totals.Add($p.m.Data, $weight, nil)",
		new:    "p.totals.Add(p.m.Data, 1, nil)",
		caught: "TestG13NothingIsLost/inmem/ssp:2/3", pkg: "libmalt", how: "sum: element 0",
	},
	{
		line:   "through engines: what no scatter has sent has weight 1",
		in:     "libmalt/engine.Changes.Share",
		old:    "$e.Totals.Add($e.O.Array(), $weight, nil)",
		new:    "e.Totals.Add(e.O.Array(), 1, nil)",
		caught: "TestG13NothingIsLost/inmem/ssp:2_graph=shards/3", pkg: "libmalt", how: "sum: element 0",
	},
	{
		line:   "the weight of the last scatter is forgotten",
		in:     "libmalt/reduce.Totals.Add",
		old:    "$t.Weight = $weight",
		new:    "",
		caught: "TestG13NothingIsLost/inmem/ssp:2/3", pkg: "libmalt", how: "sum: element 0",
	},
	{
		line:   "what a scatter has sent is sent again",
		in:     "libmalt/reduce.Totals.Add",
		old:    "$t.Shadow",
		new:    "append([]byte(nil), t.Shadow...)",
		caught: "TestExploreChanges/ssp", how: "times, after",
	},
	{
		line:   "what a gather has added counts as a change",
		in:     "libmalt/reduce.Totals.ApplyPart",
		old:    "$t.Shadow[lo:hi]",
		new:    "append([]byte(nil), t.Shadow[lo:hi]...)",
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
	{
		line:   "settling: a total that comes after this rank has told of one counts",
		in:     "libmalt/boxes.totals.upTo",
		old:    "$t.told[$src.rank] || !$t.b.ch.view.Has($src.rank)",
		new:    "false",
		caught: "TestExploreSettling/changes_in_async", big: true, how: "of rank 2, which died",
	},
	{
		line:   "settling: a total that was given does not count",
		in:     "libmalt/boxes.totals.left",
		old:    "$src.held, $src.has = $given, true",
		new:    "",
		caught: "TestExploreSettling/changes_in_async", big: true, how: "of rank 2, which died",
	},
	{
		line:   "settling: the last total is not looked for before a rank tells",
		in:     "libmalt/boxes.totals.stand",
		old:    "$t.keep($src)",
		new:    "",
		caught: "TestExploreSettling/changes_in_async", big: true, how: "of rank 2, which died",
	},
	{
		line:   "settling: a total that was copied cannot be given",
		in:     "libmalt/boxes.totals.kept",
		old:    "$u.Data = $t.codec.Kept($rank)",
		new:    "",
		caught: "TestExploreSettling/changes_in_async", big: true, how: "sent 0 bytes",
	},
	{
		line:   "settling: the box of a rank that is left out closes before its total is given",
		in:     "libmalt/boxes.Boxes.bury",
		old:    "$b.Settles()",
		new:    "false",
		caught: "TestExploreSettling/changes_in_async", big: true, how: "of rank 2, which died",
	},
	{
		line:   "settling: in lock-step a total counts beyond the clock that all have",
		in:     "libmalt/boxes.totals.left",
		old:    "$clock > $counts",
		new:    "false",
		caught: "TestExploreSettling/changes_in_bsp,_a_death_while_settling", big: true, how: "of rank 3, which died",
	},
}

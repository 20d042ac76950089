package tests

// ofRows are those of rows with ids.
var ofRows = []mutation{
	{
		line:   "rows: a message of a sync that was given up is taken for one of this",
		in:     "libmalt/rows.Course.judge",
		old:    "$s.Clock < $c.number",
		new:    "s.Clock < c.number && false",
		caught: "TestExploreRows/given_up", how: "bytes at",
	},
	{
		line:   "rows: a round is over when all has come, though not all has been sent",
		in:     "libmalt/rows.Course.over",
		old:    "$p.sent < $p.to || $p.got != $p.from",
		new:    "p.got != p.from",
		caught: "TestExploreRows/two_ranks", how: "needs it",
	},
	{
		line:   "rows: a round is over when all has been sent, though not all has come",
		in:     "libmalt/rows.Course.over",
		old:    "$p.sent < $p.to || $p.got != $p.from",
		new:    "p.sent < p.to",
		caught: "TestExploreRows/two_ranks", how: "gives rank",
	},
	{
		line:   "rows: a message is not released",
		in:     "libmalt/rows.Engine.took",
		old:    "$l.in.Release($l.held.Seq)",
		new:    "",
		caught: "TestExploreRows/two_ranks", how: "waits for ever",
	},
	{
		line:   "rows: a sync begins with what the last one has left",
		in:     "libmalt/rows.Engine.begin",
		old:    "$e.neutral($c.rows[0], $e.plan.rows[0])",
		new:    "",
		caught: "TestExploreRows/two_ranks", how: "gives rank",
	},
	{
		line:   "rows: so does a round",
		in:     "libmalt/rows.Engine.open",
		old:    "$e.neutral($c.rows[1], $e.plan.rows[$c.round+1])",
		new:    "",
		caught: "TestExploreRows/two_ranks", how: "gives rank",
	},
	{
		line:   "rows: a row does not wait for those of the members before its own",
		in:     "libmalt/rows.Engine.fold",
		old:    "$limit = min($limit, $places[$n])",
		new:    "",
		caught: "TestG14Rows/all_of_10,_sum_of_3", pkg: "libmalt", how: "for element",
	},
	{
		line:   "rows: the result is there before all ranks are known to be in the call",
		in:     "libmalt/engine.meeting.Step",
		old:    "!$done || !$m.met",
		new:    "!done",
		caught: "TestExploreRows/given_up", how: "needs it",
	},
	{
		line:   "rows: no rank hears that another has given the sync up",
		in:     "libmalt/engine.meeting.orGone",
		old:    "$gone = $m.Gone($rank, $m.lacks($rank))",
		new:    "_ = rank",
		caught: "TestExploreRows/given_up", how: "waits for ever",
	},
	{
		line:   "rows: what a rank had sent before it left does not count",
		in:     "libmalt/engine.meeting.orGone",
		old:    "$err == nil && !$done && $m.Gone($rank, $m.lacks($rank)) != nil",
		new:    "err == nil",
		caught: "TestExploreRows/two_ranks", how: "needs it",
	},
	{
		line:   "rows: the header of a rank that has left is dropped on the look for why",
		in:     "libmalt/engine.meeting.orGone",
		old:    "if $gone = $m.Gone($rank, $m.lacks($rank)); $gone != nil { break }",
		new:    "if gone = m.Gone(rank, m.lacks(rank)); gone != nil { _ = m.Because(rank, gone); break }",
		caught: "TestExploreRows/one_leaves", how: "needs it",
	},
}

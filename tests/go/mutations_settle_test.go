package tests

// ofSettling are those of survivors on several hosts.
var ofSettling = []mutation{
	{
		line:   "settling: a gather does not freeze",
		in:     "libmalt/boxes.gathering.adopt",
		old:    "!$b.settles()",
		new:    "true",
		caught: "TestExploreSettling/bsp", how: "has folded the set",
	},
	{
		line:   "settling: a gather goes on without a rank before this one is settled",
		in:     "libmalt/boxes.gathering.behind",
		old:    "$verdict = rule.Wait",
		new:    "",
		caught: "TestExploreSettling/bsp", how: "has folded the set",
	},
	{
		line:   "settling: what has come of a rank that is left out counts",
		in:     "libmalt/boxes.gathering.lockstep",
		old:    "$b.settles() && !$b.ch.view.Has($r)",
		new:    "false",
		caught: "TestExploreSettling/bsp", how: "has folded the set",
	},
	{
		line:   "settling: an update is not forwarded",
		in:     "libmalt/internal/core.settling.count",
		old:    "$s.forward($it)",
		new:    "",
		caught: "TestExploreSettling/bsp", how: "has folded the set",
	},
	{
		line:   "making: a rank waits for the memory of those that have heard of a death before",
		in:     "libmalt.making.overtaken",
		old:    "$m.w.job.Adopt().Generation != $m.begun",
		new:    "false",
		caught: "TestDeathSeenBeforeTheExchangeConnects", how: "timed out",
	},
	{
		line:   "settling: an update for some receivers is forwarded to others",
		in:     "libmalt/boxes.Boxes.Held",
		old:    "$u.Age == named",
		new:    "false",
		caught: "TestExploreSettling/bsp,_to_one_rank", how: "was for rank 0 alone",
	},
	{
		line:   "settling: each rank counts what it has folded itself",
		in:     "libmalt/internal/core.settling.count",
		old:    "counted{$folded, $m.counted[$it.stand.Rank].given}",
		new:    "counted{$m.stands.of[0].Folded, $m.counted[$it.stand.Rank].given}",
		caught: "TestExploreSettling/bsp", how: "has folded the set",
	},
	{
		line:   "settling: a rank goes on before all is forwarded",
		in:     "libmalt/internal/core.settling.wants",
		old:    "$s.planned && $in.forwards && !$in.ended",
		new:    "false",
		caught: "TestExploreSettling/bsp", how: "waits for ever",
	},
	{
		line: "settling: a call does not freeze",
		in:   "libmalt/internal/core.Collective.attempts",
		old:  "if $on { $done, $err = $step() }",
		new: `
			if !$done {
				$done, $err = $step()
			}
			if !$on && $err == errAttempt {
				$done, $err = false, nil
			}`,
		caught: "TestExploreSettling/sum", how: "waits for ever",
	},
	{
		line:   "settling: a result is not forwarded",
		in:     "libmalt/internal/core.settling.plan",
		old:    "$s.forward($result)",
		new:    "",
		caught: "TestExploreSettling/sum", how: "waits for ever",
	},
	{
		line:   "settling: what a rank that is left out told of objects is not forwarded",
		in:     "libmalt/internal/core.Collective.follow",
		old:    "$c.Job.hear($r, $m, $at)",
		new:    "_ = $at",
		caught: "TestExploreSettling/news_of_the_dead", big: true, how: "is at clock",
	},
	{
		line:   "settling: what a rank that is left out has told counts in later calls",
		in:     "libmalt/internal/core.Collective.End",
		old:    "$l := $s.stood($among)",
		new:    "_ = $among; $l := $s.stood(nil)",
		caught: "TestExploreSettling/news_of_the_dead", big: true, how: "is at clock",
	},
	{
		line:   "settling: a gather that is frozen does not forward what it has",
		in:     "libmalt/internal/core.settling.inside",
		old:    "$m == $s.self",
		new:    "false",
		caught: "TestExploreSettling/bsp", how: "waits for ever",
	},
	{
		line:   "settling: a sync across hosts does not freeze",
		in:     "libmalt/route/hosts.sync.settled",
		old:    "return $generation > 0, $err",
		new:    "return true, $err",
		caught: "TestExploreSettling/exchange_within_a_host", big: true, how: "waits for ever",
	},
	{
		line:   "settling: a sync across hosts goes on in a later view",
		in:     "libmalt/route/hosts.sync.settled",
		old:    "$generation <= 1",
		new:    "$generation < 100",
		caught: "TestExploreSettling/exchange_of_two", how: "waits for ever",
	},
	{
		line:   "settling: nobody tells how far a route is",
		in:     "libmalt/internal/core.settling.look",
		old:    "$s.job.RouteRank() + 1",
		new:    "$s.job.RouteRank()",
		caught: "TestExploreSettling/exchange_within_a_host", big: true, how: "waits for ever",
	},
	{
		line:   "settling: a result of a route is not taken",
		in:     "libmalt/boxes.carried.Given",
		old:    "$counted == $clock && $u.Clock == $clock",
		new:    "$counted == $clock && $u.Clock > $clock",
		caught: "TestExploreSettling/exchange_within_a_host", big: true, how: "waits for ever",
	},
}

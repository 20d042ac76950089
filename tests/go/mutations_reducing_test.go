package tests

// ofAllReduces are those of allreduces in place.
var ofAllReduces = []mutation{
	{
		line: "allreduce in place: arrival before the card is shown",
		in:   "libmalt/route/shared.allReduce.arrive",
		old: `
			$o.r.showCard($o.card)
			$o.r.shared.Set(wordCalled, $o.Number())`,
		new: `
			$o.r.shared.Set(wordCalled, $o.Number())
			_ = $o.r.shared.Get(0, wordMeeting)
			$o.r.showCard($o.card)`,
		caught: "TestExploreReducing/at_different_clocks", how: "is at clock",
	},
	{
		line:   "allreduce in place: a card that nobody reads counts as told",
		in:     "libmalt/route/shared.allReduce.decideAndFold",
		old:    "$o.Unread()",
		new:    "",
		caught: "TestExploreReducing/news_of_a_card_that_nobody_reads", how: "is at clock",
	},
	{
		line:   "allreduce in place: an update counts as seen only where there is news",
		in:     "libmalt/internal/core.Collective.End",
		old:    "$c.Job.touch($c.about)",
		new:    "",
		caught: "TestExploreReducing/seen,_without_news", how: "scatters without a gather",
	},
	{
		line:   "allreduce in place: the cards are not compared",
		in:     "libmalt/route/shared.allReduce.choose",
		old:    "$o.alike()",
		new:    "true",
		caught: "TestExploreReducing/another_fold", how: "claims",
	},
	{
		line: "allreduce in place: the cards are read after it is told that they were",
		in:   "libmalt/route/shared.allReduce.decideAndFold",
		old: `
			$o.hear()
			$o.r.fold($p, $o.r.rank)
			$o.r.finish($p, $mine)`,
		new: `
			$o.r.fold($p, $o.r.rank)
			$o.r.finish($p, $mine)
			$o.hear()`,
		caught: "TestExploreReducing/at_different_clocks", how: "is at clock",
	},
	{
		line:   "allreduce in place: nobody looks for who has gone, or sends messages",
		in:     "libmalt/route/shared.allReduce.choose",
		old:    "$o.Lost()",
		new:    "$o.Lost() && false",
		caught: "TestExploreReducing/one_has_ended", how: "waits for ever",
	},
	{
		line:   "allreduce in place: who has called a later call counts as one of this",
		in:     "libmalt/route/shared.allReduce.alike",
		old:    "$o.r.shared.Get($rank, wordCalled) != $o.Number()",
		new:    "$o.r.shared.Get($rank, wordCalled) < $o.Number()",
		caught: "TestExploreReducing/another_call,_given_up", how: "claims",
	},
	{
		line:   "allreduce in place: no wait for all to fold",
		in:     "libmalt/route/shared.allReduce.advance",
		old:    "return len($o.Late()) == 0, nil",
		new:    "return true, nil",
		caught: "TestExploreReducing/two_ranks", how: "gives",
	},
	{
		line:   "allreduce in place: who has folded for any call counts",
		in:     "libmalt/route/shared.allReduce.advance",
		old:    "$o.r.unfolded($p, $late)",
		new:    "$o.r.below($o.r.all, wordReduced, 1, $late)",
		caught: "TestExploreReducing/two_ranks", how: "gives",
	},
	{
		line: "allreduce in place: has folded, before the fold",
		in:   "libmalt/route/shared.allReduce.decideAndFold",
		old:  "$o.r.fold($p, $rank)",
		new: `
			$o.r.shared.Set(wordReduced, $o.Number())
			$o.r.fold($p, $rank)`,
		caught: "TestExploreReducing/two_ranks", how: "gives",
	},
	{
		line:   "allreduce in place: the word of a sync says who has folded",
		in:     "libmalt/route/shared.allReduce.advance",
		old:    "$o.r.unfolded($p, $late)",
		new:    "$o.r.below($o.r.all, wordStep, $o.Number(), $late)",
		caught: "TestExploreReducing/between_syncs", how: "claims",
	},
	{
		line:   "allreduce in place: decided in the word of a sync",
		in:     "libmalt/route/shared.allReduce.decideAndFold",
		old:    "$o.r.decide(wordMeeting, $o.Number(), $want)",
		new:    "$o.r.decide(wordDecision, $o.Number(), $want)",
		caught: "TestExploreReducing/before_a_sync", how: "claims",
	},
	{
		line:   "allreduce in place: giving up does not decide",
		in:     "libmalt/route/shared.allReduce.leave",
		old:    "$o.decideAndFold(aborted)",
		new:    "_ = $o",
		caught: "TestExploreReducing/given_up,_then_a_gather", how: "claims",
	},
	{
		line: "allreduce in place: giving up after the decision does not fold",
		in:   "libmalt/route/shared.allReduce.leave",
		old: `
			if $o.decideAndFold(aborted); $o.state == committed {
				$o.r.leftAt = $o.Number()
			}`,
		new: `
			if $o.state == pending {
				$o.state, _, _ = $o.r.decide(wordMeeting, $o.Number(), aborted)
			}
			if $o.state == committed {
				$o.r.leftAt = $o.Number()
			}`,
		caught: "TestExploreReducing/given_up,_then_a_gather", how: "claims 1 blocks",
	},
	{
		line:   "allreduce in place: folds after another has given it up",
		in:     "libmalt/route/shared.allReduce.decideAndFold",
		old:    "state == committed",
		new:    "want == committed",
		caught: "TestExploreReducing/given_up,_then_a_gather", how: "claims",
	},
	{
		line:   "allreduce in place: a gather after giving up does not wait for all to fold",
		in:     "libmalt/boxes.gathering.receive",
		old:    "$o.b.Route.Writers($o.late[:0])",
		new:    "$o.late[:0]",
		caught: "TestExploreReducing/given_up,_then_a_gather", how: "claims",
	},
	{
		line:   "allreduce in place: a scatter after giving up does not wait for all to fold",
		in:     "libmalt/boxes.scattering.advance",
		old:    "$s.Route.Writers($o.late[:0])",
		new:    "$o.late[:0]",
		caught: "TestExploreReducing/given_up,_then_a_scatter", how: "claims",
	},
	{
		line:   "allreduce in place: a collective call after giving up does not wait for all to fold",
		in:     "libmalt/internal/core.Collective.Enter",
		old:    "len($c.late) > 0",
		new:    "false",
		caught: "TestExploreReducing/given_up,_then_a_broadcast", how: "after a broadcast",
	},
}

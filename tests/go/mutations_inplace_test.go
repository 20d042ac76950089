package tests

// ofAverages are those of averages in place.
var ofAverages = []mutation{
	{
		line: "in place: arrival before the weight is stored",
		in:   "libmalt/route/shared.Route.Begin",
		old: `
			$r.put(wordWeight, math.Float64bits($weight))
			$r.shared.Set(wordStep, 2*$r.clock-1)`,
		new: `
			$r.shared.Set(wordStep, 2*$r.clock-1)
			$r.put(wordWeight, math.Float64bits($weight))`,
		caught: "TestExploreInPlace/two_ranks", how: "claims 1 blocks",
	},
	{
		line: "in place: arrival before the fold is stored",
		in:   "libmalt/route/shared.Route.Begin",
		old: `
			$r.put(wordOp, uint64($op))
			$r.put(wordWeight, math.Float64bits($weight))
			$r.shared.Set(wordStep, 2*$r.clock-1)`,
		new: `
			$r.put(wordWeight, math.Float64bits($weight))
			$r.shared.Set(wordStep, 2*$r.clock-1)
			$r.put(wordOp, uint64($op))`,
		caught: "TestExploreInPlace/different_folds", how: "in element",
	},
	{
		line: "in place: progress is told before the fold",
		in:   "libmalt/route/shared.Route.fold",
		old:  "$r.foldBlock($p, $lo)",
		new: `
			$r.note(rank, wordDone, atBlock($p.number, block))
			$r.foldBlock($p, $lo)`,
		caught: "TestExploreInPlace/two_ranks", how: "claims 1 blocks of clock 1",
	},
	{
		line:   "in place: giving up does not send",
		in:     "libmalt/boxes.syncing.leave",
		old:    "_ = $o.scatter()",
		new:    "",
		caught: "TestExploreInPlace/given_up", how: "no scatter() since the last gather()",
	},
	{
		line:   "in place: a collective call comes before what is to be sent",
		in:     "libmalt/boxes.syncing.leave",
		old:    "_ = $o.scatter()",
		new:    "",
		caught: "TestExploreInPlace/given_up,_barrier", how: "no scatter() since the last gather()",
	},
	{
		line:   "in place: no wait for all to arrive",
		in:     "libmalt/route/shared.Route.choose",
		old:    "len($r.late) > 0",
		new:    "false",
		caught: "TestExploreInPlace/two_ranks", how: "claims 1 blocks",
	},
	{
		line:   "in place: no wait for all to fold",
		in:     "libmalt/route/shared.Route.Step",
		old:    "len($r.late) > 0",
		new:    "false",
		caught: "TestExploreInPlace/two_ranks", how: "in element",
	},
	{
		line: "in place: has folded, before the fold",
		in:   "libmalt/route/shared.Route.decideAndFold",
		old:  "$start := time.Now()",
		new: `
			$start := time.Now()
			r.shared.Set(wordStep, 2*r.clock)`,
		caught: "TestExploreInPlace/two_ranks", how: "in element",
	},
	{
		line:   "in place: the decision is not swapped but stored",
		in:     "libmalt/route/shared.Route.decide",
		old:    "$r.shared.Swap($r.home(), $word, $d, $decided)",
		new:    "_ = $d; $r.shared.Swap(0, $word, $r.shared.Get(0, $word), $decided)",
		caught: "TestExploreInPlace/given_up_for_good", how: "waits for ever",
	},
	{
		line:   "in place: a commit is hidden by the decision about a later sync",
		in:     "libmalt/route/shared.Route.decide",
		old:    "$r.let()",
		new:    "",
		caught: "TestExploreInPlace/small,_one_scatters_by_itself", how: "has folded the set",
	},
	{
		line:   "in place: what a rank has been let know is not looked at after the decision",
		in:     "libmalt/route/shared.Route.decision",
		old:    "$r.shared.Get($r.rank, wordStep) == 2*$clock",
		new:    "false",
		caught: "TestExploreInPlace/small,_one_scatters_by_itself", how: "has folded the set",
	},
	{
		line:   "in place: the last that has folded does not ring",
		in:     "libmalt/route/shared.Route.finish",
		old:    "$decided || $last",
		new:    "$decided",
		caught: "TestExploreInPlace/two_ranks", how: "waits for ever",
	},
	{
		line:   "in place: the rank that decides rings before it has folded",
		in:     "libmalt/route/shared.Route.finish",
		old:    "$r.shared.Set($word, $folded)",
		new:    "$r.shared.Ring(); $r.shared.Set($word, $folded); return",
		caught: "TestExploreInPlace/small", how: "waits for ever",
	},
	{
		line:   "in place: each rank takes an array for small by itself",
		in:     "libmalt/route/shared.pass.begin",
		old:    "$d&forAll != 0",
		new:    "r.small",
		caught: "TestExploreInPlace/small_for_one", how: "in element",
	},
	{
		line:   "in place: who has missed a decision folds its span",
		in:     "libmalt/route/shared.pass.begin",
		old:    "$d&(forAll-1) != 2*$number",
		new:    "false",
		caught: "TestExploreInPlace/small,_one_scatters_by_itself", how: "in element",
	},
	{
		line:   "in place: a rank that has closed the vector is waited for",
		in:     "libmalt/route/shared.Route.Close",
		old:    "$r.shared.Set(wordClosed, 1)",
		new:    "",
		caught: "TestExploreInPlace/closed", how: "waits for ever",
	},
	{
		line:   "in place: what was known of the ranks counts although something has changed",
		in:     "libmalt/internal/core.Marks.counted",
		old:    "$c.at == $at",
		new:    "($c.at == $at || true)",
		caught: "TestExploreInPlace/two_ranks,_a_death", how: "waits for ever",
	},
	{
		line:   "in place: a scatter does not decide",
		in:     "libmalt/boxes.scattering.advance",
		old:    "$s.Route.Scatters($clock)",
		new:    "",
		caught: "TestExploreInPlace/one_scatters_by_itself", how: "waits for ever",
	},
	{
		line:   "in place: a rank that has gone does not decide",
		in:     "libmalt/route/shared.Route.choose",
		old:    "$r.o.Missing($rank, $gone)",
		new:    "func() (bool, error) { _, _ = $r.o.Missing($rank, $gone); return true, nil }()",
		caught: "TestExploreInPlace/uneven", how: "waits for ever",
	},
	{
		line: "in place: giving up does not decide",
		in:   "libmalt/route/shared.Route.Leave",
		old:  "$r.decideAndFold(aborted)",
		new: `
			if $r.state == pending {
				$r.state = aborted
			}`,
		caught: "TestExploreInPlace/given_up_for_good", how: "waits for ever",
	},
	{
		line: "in place: giving up after the decision does not fold",
		in:   "libmalt/route/shared.Route.Leave",
		old:  "$r.decideAndFold(aborted)",
		new: `
			if $r.state == pending {
				$r.state, _, _ = $r.decide(wordDecision, $r.clock, aborted)
			}`,
		caught: "TestExploreInPlace/given_up_for_good", how: "waits for ever",
	},
	{
		line:   "in place: the gather after giving up does not wait for all to fold",
		in:     "libmalt/boxes.gathering.lockstep",
		old:    "$o.late = append($o.late, $s.Route.Late()...)",
		new:    "",
		caught: "TestExploreInPlace/given_up", how: "in element",
	},
	{
		line:   "in place: what was decided is looked at anew after a timeout",
		in:     "libmalt/route/shared.Route.Step",
		old:    "$r.state == pending",
		new:    "$r.state = pending; $r.state == pending;",
		caught: "TestExploreInPlace/two_ranks", how: "holds",
	},
	{
		line:   "in place: a call that times out is not given up",
		in:     "libmalt/internal/core.waiter.await",
		old:    "$op.GiveUp()",
		new:    "",
		caught: "TestExploreInPlace/given_up_for_good", how: "waits for ever",
	},
}

package tests

// ofExchanges are those of averages across hosts.
var ofExchanges = []mutation{
	{
		line:   "across hosts: who has finished changes to boxes of its own accord",
		in:     "libmalt/route/hosts.Route.Leave",
		old:    "!$o.aborted && !$o.finished()",
		new:    "!$o.aborted",
		caught: "TestExploreAcross/given_up", how: "has folded the set 0b1,",
	},
	{
		line:   "across hosts: who has not finished gives up without changing to boxes",
		in:     "libmalt/route/hosts.Route.Leave",
		old:    "!$o.aborted && !$o.finished()",
		new:    "false",
		caught: "TestExploreAcross/given_up_for_good", how: "waits for ever",
	},
	{
		line: "across hosts: the array is written before the result is whole",
		in:   "libmalt/exchange.Exchange.Complete",
		old: `
			if $o.sums[$i].last.Clock != $x.number {
				return false
			}`,
		new:    "_ = $i",
		caught: "TestExploreAcross/two_hosts", how: "in element",
	},
	{
		line:   "across hosts: nobody looks whether another has changed to boxes",
		in:     "libmalt/boxes.carried.InBox",
		old:    "$u.Tag != $but",
		new:    "$u.Tag > $but",
		caught: "TestExploreAcross/given_up", how: "waits for ever",
	},
	{
		line:   "across hosts: a rank stays in a sync that a collective call has gone past",
		in:     "libmalt/route/hosts.sync.advance",
		old:    "$at > $o.clock || $at == $o.clock && !$o.sent",
		new:    "$at == $o.clock && !$o.sent",
		caught: "TestExploreAcross/given_up,_barrier,_others_far_ahead", how: "waits for ever",
	},
	{
		line:   "across hosts: a rank that has gone is waited for",
		in:     "libmalt/route/hosts.sync.forsaken",
		old:    "$dead != nil || !$wait",
		new:    "$dead != nil || $wait && false",
		caught: "TestExploreAcross/uneven", how: "waits for ever",
	},
	{
		line:   "across hosts: a rank that has scattered to others only is waited for",
		in:     "libmalt/route/hosts.sync.forsaken",
		old:    "$clock >= $o.clock",
		new:    "$clock > $o.clock",
		caught: "TestExploreAcross/one_scatters_to_nobody", how: "waits for ever",
	},
	{
		line:   "across hosts: parts of other folds are added up",
		in:     "libmalt/exchange.Exchange.gather",
		old:    "$u.Kind != $x.stamp.Kind",
		new:    "false",
		caught: "TestExploreAcross/different_folds", how: "in element",
	},
	{
		line:   "across hosts: no wait for all of the host to arrive",
		in:     "libmalt/route/hosts.sync.advance",
		old:    "$o.late = $o.below(2*$o.clock - 1)",
		new:    "$o.late = $o.below(2*$o.clock - 1)[:0]",
		caught: "TestExploreAcross/within_a_host", how: "at clock 1",
	},
	{
		line:   "across hosts: no wait until all of the host have what it needs",
		in:     "libmalt/route/hosts.sync.advance",
		old:    "$o.late = $o.below(2 * $o.clock)",
		new:    "$o.late = $o.below(2 * $o.clock)[:0]",
		caught: "TestExploreAcross/within_a_host", how: "in element",
	},
	{
		line:   "across hosts: no wait until all of the other hosts have what they need",
		in:     "libmalt/route/hosts.sync.advance",
		old:    "$at < $o.clock",
		new:    "$at < $o.clock && r.hosts.Of[rank] == r.hosts.Of[r.rank]",
		caught: "TestExploreAcross/two_ranks_and_one", how: "has folded the set",
	},
	{
		line: "across hosts: the step is told before the scratch is filled",
		in:   "libmalt/route/hosts.sync.advance",
		old: `
			$o.fillScratch()
			$o.stepped = true
			$r.near.Set(wordStep, 2*$o.clock)
			$r.near.Ring()`,
		new: `
			$o.stepped = true
			$r.near.Set(wordStep, 2*$o.clock)
			$r.near.Ring()
			$o.fillScratch()`,
		caught: "TestExploreAcross/within_a_host", how: "at clock 1",
	},
	{
		line: "across hosts: arrival before the weight is stored",
		in:   "libmalt/route/hosts.Route.Begin",
		old: `
			$r.near.Put(wordWeight, math.Float64bits($weight))
			$r.near.Set(wordStep, 2*$clock-1)`,
		new: `
			$r.near.Set(wordStep, 2*$clock-1)
			$r.near.Put(wordWeight, math.Float64bits($weight))`,
		caught: "TestExploreAcross/within_a_host", how: "at clock 1",
	},
	{
		line:   "across hosts: the lowest rank has finished before it has said so for its host",
		in:     "libmalt/route/hosts.sync.finished",
		old:    "return $o.done",
		new:    "return $o.stepped",
		caught: "TestExploreAcross/within_a_host,_given_up_for_good", how: "waits for ever",
	},
}

package tests

// ofExchanges are those of averages across hosts.
var ofExchanges = []mutation{
	{
		line:   "across hosts: who has finished changes to boxes of its own accord",
		file:   "libmalt/exchanging.go",
		old:    "	if !o.boxes && !o.finished() {\n		o.boxes = true\n",
		new:    "	if !o.boxes {\n		o.boxes = true\n",
		caught: "TestExploreAcross/given_up", how: "has folded the set 0b1,",
	},
	{
		line:   "across hosts: who has not finished gives up without changing to boxes",
		file:   "libmalt/exchanging.go",
		old:    "	if !o.boxes && !o.finished() {\n		o.boxes = true\n",
		new:    "	if false {\n		o.boxes = true\n",
		caught: "TestExploreAcross/given_up_for_good", how: "waits for ever",
	},
	{
		line: "across hosts: the array is written before the result is whole",
		file: "libmalt/exchange/exchange.go",
		old:  "			if o.sums[i].last.Clock != x.number {\n				return false\n			}\n", new: "			_ = i\n",
		caught: "TestExploreAcross/two_hosts", how: "in element", pkg: "libmalt",
	},
	{
		line: "across hosts: nobody looks whether another has changed to boxes",
		file: "libmalt/exchanging.go",
		old:  "ok && u.Tag != asInsurance {", new: "ok && u.Tag > asInsurance {",
		caught: "TestExploreAcross/given_up", how: "waits for ever",
	},
	{
		line: "across hosts: a rank that has gone is waited for",
		file: "libmalt/exchanging.go",
		old:  "if wait, dead := s.missing(r, gone); dead != nil || !wait {", new: "if _, dead := s.missing(r, gone); dead != nil {",
		caught: "TestExploreAcross/uneven", how: "waits for ever",
	},
	{
		line: "across hosts: a rank that has scattered to others only is waited for",
		file: "libmalt/exchanging.go",
		old:  "clock >= o.clock", new: "clock > o.clock",
		caught: "TestExploreAcross/one_scatters_to_nobody", how: "waits for ever",
	},
	{
		line: "across hosts: parts of other folds are added up",
		file: "libmalt/exchange/step.go",
		old:  "case u.Kind != x.stamp.Kind:", new: "case false:",
		caught: "TestExploreAcross/different_folds", how: "in element", pkg: "libmalt",
	},
	{
		line: "across hosts: no wait for all of the host to arrive",
		file: "libmalt/exchanging.go",
		old:  "o.late = o.below(2*o.clock - 1); len(o.late) > 0 {", new: "o.late = o.below(2*o.clock - 1)[:0]; false {",
		caught: "TestExploreAcross/within_a_host", how: "at clock 1",
	},
	{
		line: "across hosts: no wait until all of the host have what it needs",
		file: "libmalt/exchanging.go",
		old:  "o.late = o.below(2 * o.clock); len(o.late) > 0 {", new: "o.late = o.below(2 * o.clock)[:0]; false {",
		caught: "TestExploreAcross/within_a_host", how: "in element",
	},
	{
		line: "across hosts: no wait until all of the other hosts have what they need",
		file: "libmalt/exchanging.go",
		old:  "at < o.clock {", new: "at < o.clock && s.w.hosts.of[r] == s.w.hosts.of[s.w.rank] {",
		caught: "TestExploreAcross/two_ranks_and_one", how: "has folded the set",
	},
	{
		line:   "across hosts: the step is told before the scratch is filled",
		file:   "libmalt/exchanging.go",
		old:    "			o.keep()\n			o.step2 = true\n			a.near.Set(acrossStep, 2*o.clock)\n",
		new:    "			o.step2 = true\n			a.near.Set(acrossStep, 2*o.clock)\n			o.keep()\n",
		caught: "TestExploreAcross/within_a_host", how: "at clock 1",
	},
	{
		line:   "across hosts: arrival before the weight is stored",
		file:   "libmalt/exchanging.go",
		old:    "	near.Put(acrossWeight, math.Float64bits(weight))\n	near.Set(acrossStep, 2*o.clock-1)\n",
		new:    "	near.Set(acrossStep, 2*o.clock-1)\n	near.Put(acrossWeight, math.Float64bits(weight))\n",
		caught: "TestExploreAcross/within_a_host", how: "at clock 1",
	},
	{
		line: "across hosts: the lowest rank has finished before it has said so for its host",
		file: "libmalt/exchanging.go",
		old:  "		return o.done\n", new: "		return o.step2\n",
		caught: "TestExploreAcross/within_a_host,_given_up_for_good", how: "waits for ever",
	},
}

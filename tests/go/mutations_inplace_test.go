package tests

// ofAverages are those of averages in place.
var ofAverages = []mutation{
	{
		line:   "in place: arrival before the weight is stored",
		file:   "libmalt/inplace.go",
		old:    "	v.tell(wordWeight, math.Float64bits(weight))\n	v.shared.Set(wordStep, 2*o.clock-1)\n",
		new:    "	v.shared.Set(wordStep, 2*o.clock-1)\n	v.tell(wordWeight, math.Float64bits(weight))\n",
		caught: "TestExploreInPlace/two_ranks", how: "claims 1 blocks",
	},
	{
		line:   "in place: arrival before the fold is stored",
		file:   "libmalt/inplace.go",
		old:    "	v.tell(wordOp, uint64(op))\n	v.tell(wordWeight, math.Float64bits(weight))\n	v.shared.Set(wordStep, 2*o.clock-1)\n",
		new:    "	v.tell(wordWeight, math.Float64bits(weight))\n	v.shared.Set(wordStep, 2*o.clock-1)\n	v.tell(wordOp, uint64(op))\n",
		caught: "TestExploreInPlace/different_folds", how: "in element",
	},
	{
		line:   "in place: progress is told before the fold",
		file:   "libmalt/inplace.go",
		old:    "		foldTogether(op, v.runs, lo, v.srcs, weights)\n		v.shared.Put(wordDone, number<<24|min(block, 1<<24-1))\n",
		new:    "		v.shared.Put(wordDone, number<<24|min(block, 1<<24-1))\n		foldTogether(op, v.runs, lo, v.srcs, weights)\n",
		caught: "TestExploreInPlace/two_ranks", how: "claims 1 blocks of clock 1",
	},
	{
		line: "in place: giving up does not send",
		file: "libmalt/sync.go",
		old:  "		_ = o.scatter() // nobody is there to hear how it went\n", new: "",
		caught: "TestExploreInPlace/given_up", how: "no scatter since the last gather",
	},
	{
		line: "in place: a collective call comes before what is to be sent",
		file: "libmalt/sync.go",
		old:  "		_ = o.scatter() // what fails is tried again, and told, by the sync\n", new: "",
		caught: "TestExploreInPlace/kept,_barrier", how: "the mean of no set of ranks",
	},
	{
		line: "in place: no wait for all to arrive",
		file: "libmalt/inplace.go",
		old:  "		return undecided\n	}\n	return directly\n", new: "	}\n	return directly\n",
		caught: "TestExploreInPlace/two_ranks", how: "claims 1 blocks",
	},
	{
		line: "in place: no wait for all to fold",
		file: "libmalt/inplace.go",
		old:  "o.late = s.below(wordStep, 2*o.clock, o.late[:0]); len(o.late) > 0", new: "o.late = s.below(wordStep, 2*o.clock, o.late[:0]); false",
		caught: "TestExploreInPlace/two_ranks", how: "in element",
	},
	{
		line:   "in place: has folded, before the fold",
		file:   "libmalt/inplace.go",
		old:    "	same, any := true, false\n",
		new:    "	same, any := true, false\n	v.shared.Set(wordStep, 2*o.clock)\n",
		caught: "TestExploreInPlace/two_ranks", how: "in element",
	},
	{
		line:   "in place: the decision is not swapped but stored",
		file:   "libmalt/inplace.go",
		old:    "		s.shared.Swap(0, word, d, decided)\n",
		new:    "		now, _ := s.shared.Get(0, word)\n		_ = d\n		s.shared.Swap(0, word, now, decided)\n		return want\n",
		caught: "TestExploreInPlace/given_up_for_good", how: "waits for ever",
	},
	{
		line: "in place: a scatter does not decide",
		file: "libmalt/scatter.go",
		old:  "		s.decide(wordDecision, clock, throughBoxes)\n", new: "",
		caught: "TestExploreInPlace/one_scatters_by_itself", how: "waits for ever",
	},
	{
		line: "in place: a rank that has gone does not decide",
		file: "libmalt/inplace.go",
		old:  "dead != nil || !wait {", new: "dead != nil || !wait && false {",
		caught: "TestExploreInPlace/uneven", how: "waits for ever",
	},
	{
		line: "in place: giving up does not decide",
		file: "libmalt/inplace.go",
		old:  "	o.settle(throughBoxes)\n", new: "	if o.verdict == undecided {\n		o.verdict = throughBoxes\n	}\n",
		caught: "TestExploreInPlace/given_up_for_good", how: "waits for ever",
	},
	{
		line: "in place: giving up after the decision does not fold",
		file: "libmalt/inplace.go",
		old:  "	o.settle(throughBoxes)\n", new: "	if o.verdict == undecided {\n		o.verdict = o.v.decide(wordDecision, o.clock, throughBoxes)\n	}\n",
		caught: "TestExploreInPlace/given_up_for_good", how: "waits for ever",
	},
	{
		line: "in place: the gather after giving up does not wait for all to fold",
		file: "libmalt/gather.go",
		old:  "		o.late = s.below(wordStep, 2*s.averagedAt, o.late)\n", new: "",
		caught: "TestExploreInPlace/given_up", how: "in element",
	},
	{
		line: "in place: what was decided is looked at anew after a timeout",
		file: "libmalt/inplace.go",
		old:  "	for o.verdict == undecided {\n", new: "	for o.verdict = undecided; o.verdict == undecided; {\n",
		caught: "TestExploreInPlace/two_ranks", how: "at clock 1 rank 0 holds",
	},
	{
		line: "in place: a collective call lets others wait for a sync that keeps its place",
		file: "libmalt/world.go",
		old:  "		s.goAway()\n", new: "		_ = s\n",
		caught: "TestExploreInPlace/kept,_barrier", how: "waits for ever",
	},
}

package tests

// ofAllReduces are those of allreduces in place.
var ofAllReduces = []mutation{
	{
		line:   "allreduce in place: arrival before the card is shown",
		file:   "libmalt/reducing.go",
		old:    "	o.v.showCard(o.card)\n	o.v.shared.Set(wordCalled, o.part.n)\n",
		new:    "	o.v.shared.Set(wordCalled, o.part.n)\n	o.v.showCard(o.card)\n",
		caught: "TestExploreReducing/at_different_clocks", how: "is at clock",
	},
	{
		line: "allreduce in place: the cards are not compared",
		file: "libmalt/reducing.go",
		old:  "		if o.alike() {\n", new: "		if true {\n",
		caught: "TestExploreReducing/another_fold", how: "claims",
	},
	{
		line:   "allreduce in place: the cards are read after it is told that they were",
		file:   "libmalt/reducing.go",
		old:    "			o.level()\n			o.v.foldPart(o.op, ofCall|o.part.n, nil)\n			o.v.shared.Set(wordReduced, o.part.n)\n",
		new:    "			o.v.foldPart(o.op, ofCall|o.part.n, nil)\n			o.v.shared.Set(wordReduced, o.part.n)\n			o.level()\n",
		caught: "TestExploreReducing/at_different_clocks", how: "is at clock",
	},
	{
		line: "allreduce in place: nobody looks for who has gone, or sends messages",
		file: "libmalt/reducing.go",
		old:  "	if err != nil || sent {\n", new: "	if false {\n		_, _ = err, sent\n",
		caught: "TestExploreReducing/one_has_ended", how: "waits for ever",
	},
	{
		line: "allreduce in place: who has called a later call counts as one of this",
		file: "libmalt/reducing.go",
		old:  "called != o.part.n {", new: "called < o.part.n {",
		caught: "TestExploreReducing/another_call,_given_up", how: "claims",
	},
	{
		line: "allreduce in place: no wait for all to fold",
		file: "libmalt/reducing.go",
		old:  "return len(c.late) == 0, nil", new: "return true, nil",
		caught: "TestExploreReducing/two_ranks", how: "gives",
	},
	{
		line: "allreduce in place: who has folded for any call counts",
		file: "libmalt/reducing.go",
		old:  "c.late = o.v.below(wordReduced, c.n, ", new: "c.late = o.v.below(wordReduced, 1, ",
		caught: "TestExploreReducing/two_ranks", how: "gives",
	},
	{
		line: "allreduce in place: has folded, before the fold",
		file: "libmalt/reducing.go",
		old:  "			o.v.foldPart(", new: "			o.v.shared.Set(wordReduced, o.part.n)\n			o.v.foldPart(",
		caught: "TestExploreReducing/two_ranks", how: "gives",
	},
	{
		line:   "allreduce in place: the word of a sync says who has folded",
		file:   "libmalt/reducing.go",
		old:    "o.v.below(wordReduced, c.n, ",
		new:    "o.v.below(wordStep, c.n, ",
		caught: "TestExploreReducing/between_syncs", how: "gives",
	},
	{
		line: "allreduce in place: decided in the word of a sync",
		file: "libmalt/reducing.go",
		old:  "o.v.decide(wordMeeting, o.part.n, want)", new: "o.v.decide(wordDecision, o.part.n, want)",
		caught: "TestExploreReducing/before_a_sync", how: "claims",
	},
	{
		line: "allreduce in place: giving up does not decide",
		file: "libmalt/reducing.go",
		old:  "		if o.settle(throughBoxes); o.verdict", new: "		if o.verdict",
		caught: "TestExploreReducing/given_up,_then_a_gather", how: "claims",
	},
	{
		line:   "allreduce in place: giving up after the decision does not fold",
		file:   "libmalt/reducing.go",
		old:    "		if o.settle(throughBoxes); o.verdict",
		new:    "		if o.verdict == undecided {\n			o.verdict = o.v.decide(wordMeeting, o.part.n, throughBoxes)\n		}\n		if o.verdict",
		caught: "TestExploreReducing/given_up,_then_a_gather", how: "waits for ever",
	},
	{
		line:   "allreduce in place: folds after another has given it up",
		file:   "libmalt/reducing.go",
		old:    "o.verdict = o.v.decide(wordMeeting, o.part.n, want); o.verdict == directly",
		new:    "o.verdict = o.v.decide(wordMeeting, o.part.n, want); want == directly",
		caught: "TestExploreReducing/given_up,_then_a_gather", how: "claims",
	},
	{
		line:   "allreduce in place: a gather after giving up does not wait for all to fold",
		file:   "libmalt/gather.go",
		old:    "	if o.late = o.s.unreduced(o.late[:0]); len(o.late) > 0 {\n",
		new:    "	if o.late = o.late[:0]; false {\n",
		caught: "TestExploreReducing/given_up,_then_a_gather", how: "claims",
	},
	{
		line:   "allreduce in place: a scatter after giving up does not wait for all to fold",
		file:   "libmalt/scatter.go",
		old:    "	if o.late = s.unreduced(o.late[:0]); len(o.late) > 0 {\n",
		new:    "	if o.late = o.late[:0]; false {\n",
		caught: "TestExploreReducing/given_up,_then_a_scatter", how: "claims",
	},
	{
		line:   "allreduce in place: a collective call after giving up does not wait for all to fold",
		file:   "libmalt/collective.go",
		old:    "		if c.late = c.about.unreduced(c.late); len(c.late) > 0 {\n",
		new:    "		if false {\n",
		caught: "TestExploreReducing/given_up,_then_a_broadcast", how: "after a broadcast",
	},
}

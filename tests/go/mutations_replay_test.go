package tests

// ofReplays are those of replays of recorded runs.
var ofReplays = []mutation{
	{
		line:   "replay: a scatter does not wait until the update before it has been read",
		in:     "libmalt/boxes.Boxes.unread",
		old:    "$seq > $b.ch.out.Acked($r)",
		new:    "$seq > 1<<62",
		caught: "TestExploreReplay/async", how: "does not do what it did",
	},
	{
		line:   "replay: an update that is read is not given back before the others of the gather have come",
		in:     "libmalt/boxes.source.keep",
		old:    "$s.inbox.Release($s.held.Seq)",
		new:    "",
		caught: "TestExploreReplay/async,_ranks_that_pass_on", how: "waits for ever",
	},
	{
		line:   "replay: a sender is not woken by what is read",
		in:     "libmalt/internal/core.Marks.Read",
		old:    "$m.Set(markReads, $m.reads.Add(1))",
		new:    "$m.Put(markReads, $m.reads.Add(1))",
		caught: "TestExploreReplay/async", how: "waits for ever",
	},
	{
		line:   "replay: an update that is given back is folded from its slot",
		in:     "libmalt/boxes.source.keep",
		old:    "$s.held.Data = $s.copy",
		new:    "",
		caught: "TestExploreReplay/async,_overwritten_while_it_is_folded", how: "torn",
	},
	{
		line:   "replay: a gather takes what has come, too",
		in:     "libmalt/boxes.gathering.replayed",
		old:    "$clock == 0",
		new:    "$clock == 1<<62",
		caught: "TestExploreReplay/async", how: "does not do what it did",
	},
}

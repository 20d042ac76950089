package tests

// ofSurvivors are those of jobs that go on when a rank dies.
var ofSurvivors = []mutation{
	{
		line:   "what a rank has sent alone counts where it is still there",
		in:     "libmalt/boxes.Boxes.bound",
		old:    "$s.below = $l.Clock + 1",
		new:    "",
		caught: "TestG8WhatOneSentAlone", how: "timed out",
	},
	{
		line: "view: the set of ranks is written after the word that names it",
		in:   "rdma/rendezvous.page.install",
		old: `
			for $i, $w := range $m.Ranks {
				$p.set($rank, $which, $i).Store($w)
			}
			for $i, $w := range $m.Hosts {
				$p.electors($rank, $which, $i).Store($w)
			}
			return $p.view().CompareAndSwap($v, $generation<<viewBits|uint64($rank)<<1|uint64($which))`,
		new: `
			swapped := $p.view().CompareAndSwap($v, $generation<<viewBits|uint64($rank)<<1|uint64($which))
			if swapped {
				for $i, $w := range $m.Ranks {
					$p.set($rank, $which, $i).Store($w)
				}
			}
			return swapped`,
		caught: "TestExploreView/two_watchers", how: "two views of generation",
	},
	{
		line:   "view: the set that the word names is filled again",
		in:     "rdma/rendezvous.page.install",
		old:    "$which = 1",
		new:    "",
		caught: "TestExploreView/one_watcher", how: "two views of generation",
	},
	{
		line:   "view: no second look at the word",
		in:     "rdma/rendezvous.page.members",
		old:    "return $p.view().Load() == $v",
		new:    "return true",
		caught: "TestExploreView/one_watcher", how: "two views of generation",
	},
	{
		line:   "view: only the rank that notices a death proposes",
		in:     "rdma/rendezvous.Host.State",
		old:    "$h.leaveOut($rank)",
		new:    "",
		caught: "TestExploreView/who_looks_repairs", how: "is known to be dead",
	},
	{
		line:   "a dead rank that is behind counts where its update has arrived",
		in:     "libmalt/boxes.gathering.takeAt",
		old:    "if slices.Contains($lost, $src.rank) { return nil }",
		new:    "",
		caught: "TestExploreSurvivors/bsp,_three_ranks", big: true, how: "has folded the set",
	},
	{
		line:   "a clock looked at before the death counts, and the others go on",
		in:     "libmalt/boxes.gathering.behind",
		old:    "$clock, _ = $look()",
		new:    "",
		caught: "TestExploreSurvivors/bsp,_three_ranks", big: true, how: "has folded the set",
	},
	{
		line:   "parts of earlier attempts count",
		in:     "libmalt/internal/core.Collective.peek",
		old:    "$s.next.Age < $c.attempt()",
		new:    "false",
		caught: "TestExploreSurvivors/sum_of_several_messages", big: true, how: "malformed header",
	},
	{
		line:   "the view of a call is that of its end",
		in:     "libmalt/internal/core.Collective.Ranks",
		old:    "return $c.view.Ranks",
		new:    "return $c.Job.View().Ranks",
		caught: "TestExploreSurvivors/sum_of_several_messages", big: true, how: "waits for ever",
	},
	{
		line:   "what a dead rank has told is left unread",
		in:     "libmalt/internal/core.Collective.exhaust",
		old:    "len($c.view.Ranks) == $c.Job.Size",
		new:    "true",
		caught: "TestExploreSurvivors/news_of_the_dead", how: "is at clock",
	},
	{
		line:   "a rank does not follow to a later attempt",
		in:     "libmalt/internal/core.Collective.again",
		old:    "$c.sent, $c.ready = -1, false",
		new:    "$c.ready = false",
		caught: "TestExploreSurvivors/sum_of_several_messages", big: true, how: "waits for ever",
	},
	{
		line:   "in place: no rank folds for a dead one",
		in:     "libmalt/route/shared.Route.unfolded",
		old:    "$at < $folded && $r.o.Lost($rank)",
		new:    "false",
		caught: "TestExploreSurvivors/in_place,_twice", how: "waits for ever",
	},
	{
		line:   "in place: the heir begins with the first block",
		in:     "libmalt/route/shared.Route.fold",
		old:    "$block += $done & (1<<blockBits - 1)",
		new:    "",
		caught: "TestExploreSurvivors/in_place,_sum", how: "claims 2 blocks",
	},
	{
		line:   "in place: a block of a sum of which the result is there is folded again",
		in:     "libmalt/route/shared.Route.foldOnce",
		old:    "$ready != atBlock($p.number, $block)",
		new:    "$ready < 1<<62",
		caught: "TestExploreSurvivors/in_place,_sum", how: "claims 1 blocks",
	},
	{
		line: "in place: a result is told before it is there",
		in:   "libmalt/route/shared.Route.foldOnce",
		old: `
			$r.foldSpare($p, $lo, $spare)
			$r.note($rank, wordReady, atBlock($p.number, $block))`,
		new: `
			$r.note($rank, wordReady, atBlock($p.number, $block))
			$r.foldSpare($p, $lo, $spare)`,
		caught: "TestExploreSurvivors/in_place,_sum", how: "claims 1 blocks",
	},
	{
		line:   "in place: a sum goes straight into the arrays",
		in:     "libmalt/route/shared.Route.fold",
		old:    "$r.o.Survives() && $p.op == reduce.Sum",
		new:    "false",
		caught: "TestExploreSurvivors/in_place,_sum", how: "claims 1 blocks",
	},
	{
		line: "in place: a span is said to be folded before its heir has folded it",
		in:   "libmalt/route/shared.Route.mend",
		old: `
			$r.fold($p, $rank)
			$r.shared.Swap($rank, $word, $at, $folded)`,
		new: `
			$r.shared.Swap($rank, $word, $at, $folded)
			$r.fold($p, $rank)`,
		caught: "TestExploreMend/three_ranks", big: true, how: "not the sum",
	},
	{
		line:   "in place: two ranks fold for a dead one",
		in:     "libmalt/route/shared.Route.heir",
		old:    "return $heir",
		new:    "_ = $heir; return r.rank",
		caught: "TestExploreMend/three_ranks", big: true, how: "not the sum",
	},
	{
		line:   "in place: a dead heir has no heir",
		in:     "libmalt/route/shared.Route.heir",
		old:    "$heir == $r.rank || !$r.o.Lost($heir)",
		new:    "true",
		caught: "TestExploreMend/three_ranks", big: true, how: "waits for ever",
	},
	{
		line:   "in place: arrays are those of ranks that live now",
		in:     "libmalt/route/shared.pass.begin",
		old:    "$r.shared.Get($rank, $word) >= $least",
		new:    "$r.shared.Get($rank, $word) >= $least && !r.o.Lost(rank)",
		caught: "TestExploreSurvivors/in_place,_sum", how: "claims 1 blocks",
	},
	{
		line:   "in place: after an allreduce a rank has the view in which it began it",
		in:     "libmalt/route/shared.allReduce.hear",
		old:    "$view = $o.r.decidersView()",
		new:    "",
		caught: "TestExploreSurvivors/allreduce_in_place", how: "and the view has",
	},
	{
		line:   "in place: the rank that decides on an allreduce shows the view in which it began it",
		in:     "libmalt/route/shared.Route.showView",
		old:    "$room, $v := $r.viewRoom($r.rank), $r.o.Transport().(rdma.Viewed).View()",
		new:    "$room, $v := $r.viewRoom($r.rank), $r.o.View()",
		caught: "TestExploreSurvivors/allreduce_in_place", how: "and the view has",
	},
	{
		line:   "edges: first comes after the update that it is about",
		in:     "rdma/box.Writer.publishQueue",
		old:    "$w.tell()",
		new:    "defer $w.tell()",
		caught: "TestExploreEdges/begins", how: "was sent to rank",
	},
	{
		line:   "edges: begun in another view counts",
		in:     "rdma/box.Writer.begin",
		old:    "$begun>>seqBits != $w.view",
		new:    "$begun == 0",
		caught: "TestExploreEdges/ends_and_begins", how: "was sent to rank",
	},
	{
		line:   "edges: a reader is served with what it has passed",
		in:     "rdma/box.Writer.begin",
		old:    "$begun&(1<<seqBits-1) > $w.seq",
		new:    "false",
		caught: "TestExploreEdges/begins", how: "waits for ever",
	},
	{
		line:   "edges: another begins before all of the first was had",
		in:     "rdma/box.Writer.begin",
		old:    "$w.control.ack($r).Load() < $w.edges[$r].to",
		new:    "false",
		caught: "TestExploreEdges/ends_and_begins", how: "was sent to rank",
	},
	{
		line:   "edges: one of which nothing was sent ends like another",
		in:     "rdma/box.Writer.settle",
		old:    "$w.Served($r) && !$w.edges[$r].told && !$keep[$r]",
		new:    "false",
		caught: "TestEdges/one_of_which_nothing_was_sent", how: "expected update 2",
	},
	{
		line:   "edges: the end is not told",
		in:     "rdma/box.Writer.settle",
		old:    "$w.control.last($r).Store($w.seq)",
		new:    "",
		caught: "TestExploreEdges/ends", how: "expected",
	},
	{
		line:   "edges: a sender waits for who gets nothing more",
		in:     "rdma/box.Writer.ringFree",
		old:    "$need := min($next-$d, $e.to)",
		new:    "$need := $next - $d",
		caught: "TestExploreEdges/ends", how: "waits for ever",
	},
	{
		line:   "edges: no bell for readers that wait for the sender's view",
		in:     "rdma/box.Writer.settle",
		old:    "$w.ringReaders()",
		new:    "",
		caught: "TestExploreEdges/one_that_sends_no_more", how: "waits for ever",
	},
	{
		line:   "edges: a reader stops before the sender says so",
		in:     "rdma/box.Reader.Over",
		old:    "if $r.control.view().Load() < $view { return false }",
		new:    "",
		caught: "TestExploreEdges/ends", how: "was sent to rank",
	},
	{
		line:   "edges: a reader stops before it has had all",
		in:     "rdma/box.Reader.Over",
		old:    "$r.seen < $last",
		new:    "false",
		caught: "TestExploreEdges/depth_2", how: "was sent to rank",
	},
	{
		line:   "edges: a reader does not count what is not for it",
		in:     "rdma/box.Reader.Pass",
		old:    "$r.seen++",
		new:    "",
		caught: "TestExploreEdges/begins", how: "in gather",
	},
	{
		line:   "edges: what is there is for every reader",
		in:     "rdma/box.Reader.nextQueue",
		old:    "$r.counts && !$r.served($next)",
		new:    "false",
		caught: "TestExploreEdges/begins", how: "corrupt",
	},
	{
		line:   "edges: a rank does not say that it reads what a new sender sends",
		in:     "libmalt/boxes.Boxes.repair",
		old:    "$s.queue.Begin($view.Generation)",
		new:    "",
		caught: "TestNewEdgesOfQueues/notify-ack", how: "survive_test.go",
	},
	{
		line:   "edges: a box does not know the new view",
		in:     "libmalt/boxes.Boxes.repair",
		old:    "$b.serve(true)",
		new:    "",
		caught: "TestNewEdgesOfQueues/notify-ack", how: "want that of rank",
	},
	{
		line:   "edges: gathers before an edge are not counted",
		in:     "libmalt/boxes.Boxes.folded",
		old:    "$b.pass()",
		new:    "",
		caught: "TestNewEdgesOfQueues/notify-ack", how: "timed out",
	},
	{
		line:   "what a dead rank has pinned is not free",
		in:     "rdma/box.Writer.freeSlot",
		old:    "if $w.forgotten[$r] { continue }",
		new:    "",
		caught: "TestForget/newest", how: "are in use",
	},
}

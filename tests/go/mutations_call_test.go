package tests

// ofCalls are those of gathers, scatters and collective calls.
var ofCalls = []mutation{
	{
		line: "bsp arrives before it publishes",
		in:   "libmalt/boxes.scattering.advance",
		old:  "$b, $err := $out.Begin()",
		new: `
			_ = $out.Advance(clock)
			$b, $err := $out.Begin()`,
		caught: "TestExplorePlays/bsp", how: "has folded the set",
	},
	{
		line:   "a clock looked at before the death counts (no reload)",
		in:     "libmalt/boxes.gathering.behind",
		old:    "$clock, _ = $look()",
		new:    "",
		caught: "TestExplorePlays/bsp", how: "when it died",
	},
	{
		line:   "a rank in an earlier collective is not waited for",
		in:     "libmalt/internal/core.Job.misses",
		old:    "return $call > $j.calls.Load()",
		new:    "return call > 0",
		caught: "TestExplorePlays/bsp,_barrier", how: "has folded the set",
	},
	{
		line:   "a rank in a collective is waited for",
		in:     "libmalt/internal/core.Job.misses",
		old:    "return $call > $j.calls.Load()",
		new:    "return call == Ended",
		caught: "TestExplorePlays/bsp,_barrier", how: "waits for ever",
	},
	{
		line:   "clocks are not levelled",
		in:     "libmalt/boxes.Boxes.raise",
		old:    "$s.SetClock(max($s.Clock(), $clock))",
		new:    "",
		caught: "TestExplorePlays/bsp,_barrier", how: "is at clock",
	},
	{
		line:   "the others do not hear of a scatter",
		in:     "libmalt/boxes.scattering.advance",
		old:    "$s.Changed()",
		new:    "",
		caught: "TestExplorePlays/bsp,_barrier", how: "is at clock",
	},
	{
		line: "the header of a call that was given up is not read",
		in:   "libmalt/internal/core.Collective.drop",
		old: `
			$c.Job.hearAll($rank, $objects)
			$s.read()`,
		new: `
			_ = $objects
			$s.read()`,
		caught: "TestExplorePlays/ssp,_news_of_a_call_given_up", how: "is at clock",
	},
	{
		line: "the queue is looked at before the sender's state (last update)",
		in:   "libmalt/boxes.gathering.drain",
		old: `
			_, $gone := $src.inbox.Clock()
			$standing, $death := $s.Job.Standing($src.rank, $gone)
			if $standing == rule.Away && !$src.inbox.Returned() && $s.Job.T.State($src.rank) == nil {
				$standing = rule.Present
			}
			$u, $ok, $err := $src.inbox.Next()`,
		new: `
			$u, $ok, $err := $src.inbox.Next()
			_, $gone := $src.inbox.Clock()
			$standing, $death := $s.Job.Standing($src.rank, $gone)
			if $standing == rule.Away && !$src.inbox.Returned() && $s.Job.T.State($src.rank) == nil {
				$standing = rule.Present
			}`,
		caught: "TestExplorePlays/notify-ack,_uneven", how: "is not folded",
	},
	{
		line:   "a scatter waits for acks of a rank that is away",
		in:     "libmalt/boxes.scattering.makeRoom",
		old:    "$s.ch.out.Excuse($r)",
		new:    "o.late = append(o.late, $r)",
		caught: "TestExplorePlays/notify-ack,_barrier", how: "waits for ever",
	},
	{
		line:   "giving up a collective is not told",
		in:     "libmalt/internal/core.Collective.GiveUp",
		old:    "$c.Job.Marks.Set(MarkGaveUp, $c.n<<FaultBits|$c.blamed())",
		new:    "",
		caught: "TestExplorePlays/bsp,_given_up", how: "waits for ever",
	},
	{
		line: "what was unseen when a collective was given up is read",
		in:   "libmalt/internal/core.Collective.GiveUp",
		old: `
			$l.Back = true
			$s.levelTo($l)`,
		new:    "_, _ = $s, $l",
		caught: "TestExplorePlays/notify-ack,_given_up,_plain_stores", how: "corrupt update",
	},
	{
		line:   "a plain store takes the mark of a collective back",
		in:     "libmalt/internal/core.Collective.GiveUp",
		old:    "$c.Job.Marks.Set(MarkAway, 0)",
		new:    "$c.Job.Marks.Put(MarkAway, 0)",
		caught: "TestExplorePlays/notify-ack,_given_up,_plain_stores", how: "corrupt update",
	},
	{
		line:   "closing an object is not told",
		in:     "libmalt/boxes.channel.quit",
		old:    "$err = errors.Join($err, out.Close())",
		new:    "",
		caught: "TestExplorePlays/bsp,_closed", how: "waits for ever",
	},
	{
		line:   "rows that a reader has not folded do not come again",
		in:     "libmalt/codec.model.readBy",
		old:    "$least = acked",
		new:    "$least = min(acked+1, seq-1)",
		caught: "TestExplorePlays/sparse", how: "its rows are",
	},
	{
		line:   "rows that a reader has folded are not skipped",
		in:     "libmalt/boxes.Boxes.folded",
		old:    "$src.read = $src.held.Seq",
		new:    "",
		caught: "TestExplorePlays/sparse", how: "is folded twice",
	},
	{
		line:   "a wait for an update is for ranks that are away, too",
		in:     "libmalt/boxes.awaiting.look",
		old:    "rule.About($standing) == rule.Wait",
		new:    "rule.About($standing) != rule.Fail",
		caught: "TestExplorePlays/async,_a_wait_for_an_update,_barrier", how: "waits for ever",
	},
	{
		line:   "a wait for an update ends when one of the senders is away",
		in:     "libmalt/boxes.awaiting.look",
		old:    "len($o.late) == 0",
		new:    "len($o.late) < len(b.ch.sources)",
		caught: "TestExplorePlays/async,_a_wait_for_an_update,_three_ranks", how: "has ended without one",
	},
	{
		line: "the readers are rung before the update is there",
		in:   "rdma/box.Writer.Commit",
		old: `
			if $w.layout.Spec.Mode.Depth() > 0 {
				$w.publishQueue()
			} else {
				$w.publishNewest($parity)
			}
			$w.slot, $w.payload = -1, nil
			$w.publishClock($clock)`,
		new: `
			$w.publishClock($clock)
			if $w.layout.Spec.Mode.Depth() > 0 {
				$w.publishQueue()
			} else {
				$w.publishNewest($parity)
			}
			$w.slot, $w.payload = -1, nil`,
		caught: "TestExplorePlays/async,_a_wait_for_an_update", how: "waits for ever", pkg: "libmalt",
	},
}

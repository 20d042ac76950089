package tests

// ofBoxes are those of boxes: newest mode, queues, relays.
var ofBoxes = []mutation{
	{
		line:   "2k slots with subsets",
		in:     "rdma/box.NewLayout",
		old:    "$l.Slots = 2*$readers + 1",
		new:    "$l.Slots = 2 * $readers",
		caught: "TestExploreNewest/in_turn", how: "no free slot among 4",
	},
	{
		line:   "3k slots in lock-step",
		in:     "rdma/box.NewLayout",
		old:    "$l.Slots = 3*$readers + 1",
		new:    "$l.Slots = 3 * $readers",
		caught: "TestExploreNewest/lock-step", how: "no free slot among 3",
	},
	{
		line:   "seen tested by slot number",
		in:     "rdma/box.Reader.nextNewest",
		old:    "$w>>slotBits <= $r.seen",
		new:    "$w == 0 || $r.payload != nil && &$r.payload[0] == &$r.env.Slot(int($w & (1<<slotBits - 1)))[headerBytes]",
		caught: "TestExploreNewest/one_reader", how: "the last update seen is",
	},
	{
		line:   "the reader does not pin",
		in:     "rdma/box.Reader.hold",
		old:    "$r.control.pin($r.me).Swap($s + 1)",
		new:    "",
		caught: "TestExploreNewest/one_reader", how: "torn",
	},
	{
		line:   "the reader does not look at latest again",
		in:     "rdma/box.Reader.hold",
		old:    "$now != $w",
		new:    "false",
		caught: "TestExploreNewest/one_reader", how: "corrupt update: seq",
	},
	{
		line:   "no fence at the pin store",
		in:     "rdma/box.Reader.hold",
		old:    "$r.control.pin($r.me).Swap($s + 1)",
		new:    "$r.control.pin($r.me).Store($s + 1)",
		caught: "TestExploreNewest/plain_stores", how: "torn",
	},
	{
		line:   "no fence before the look at the pins",
		in:     "rdma/box.Writer.publishClock",
		old:    "$w.control.clock().Swap($w.clock)",
		new:    "$w.control.clock().Store($w.clock)",
		caught: "TestExploreNewest/plain_stores", how: "corrupt update: seq",
	},
	{
		line:   "no fence before the look at the readers' bells",
		in:     "rdma/box.Writer.Close",
		old:    "$w.control.left().Swap(1 + $w.seq)",
		new:    "$w.control.left().Store(1 + $w.seq)",
		caught: "TestExploreAttach/plain_stores", how: "waits for ever",
	},
	{
		line:   "no fence when a reader attaches",
		in:     "rdma/box.NewReader",
		old:    "$r.control.readerBell($me).Swap($bell)",
		new:    "$r.control.readerBell($me).Store($bell)",
		caught: "TestExploreAttach/plain_stores", how: "waits for ever",
	},
	{
		line:   "the last update is not kept where the clock has jumped",
		in:     "rdma/box.Layout.parity",
		old:    "$seq % uint64($l.parities())",
		new:    "0",
		caught: "TestExploreAt", how: "in place of",
	},
	{
		line:   "the writer does not look at the pins",
		in:     "rdma/box.Writer.freeSlot",
		old:    "$p-1 < uint64(len($w.busy))",
		new:    "$p-1 < 0",
		caught: "TestExploreNewest/one_reader", how: "torn",
	},
	{
		line: "latest before the slot is filled",
		in:   "rdma/box.Writer.Begin",
		old:  "$w.use($s)",
		new: `
			$w.use($s)
			if $w.layout.Spec.Mode.Depth() == 0 {
				h := $w.header
				h.Seq, h.Bytes = $w.seq+1, uint64($w.layout.Spec.Bytes)
				h.Encode($w.env.Slot($s))
				$w.control.latest(0, 0).Store(($w.seq+1)<<slotBits | uint64($s))
			}`,
		caught: "TestExploreNewest/one_reader", how: "torn",
	},
	{
		line: "bump before latest",
		in:   "rdma/box.Writer.Commit",
		old: `
			if $w.layout.Spec.Mode.Depth() > 0 {
				$w.publishQueue()
			} else {
				$w.publishNewest($w.layout.parity($w.seq))
			}
			$w.slot, $w.payload = -1, nil
			$w.publishClock($s.Clock)`,
		new: `
			$w.publishClock($s.Clock)
			$w.publishQueue()
			$w.slot, $w.payload = -1, nil`,
		caught: "TestExploreQueue/depth_1", how: "waits for ever",
	},
	{
		line: "ack before the fold",
		in:   "rdma/box.Reader.nextQueue",
		old:  "$r.seen = $next",
		new: `
			$r.seen = $next
			$r.releaseQueue($next)`,
		caught: "TestExploreQueue/depth_1", how: "torn",
	},
	{
		line:   "ack = infinity when leaving",
		in:     "rdma/box.Reader.Close",
		old:    "$r.control.ack($r.me).Swap(released)",
		new:    "",
		caught: "TestExploreQueue/a_reader_leaves", how: "waits for ever",
	},
	{
		line:   "acks do not ring",
		in:     "rdma/box.Reader.releaseQueue",
		old:    "$r.ringSender()",
		new:    "",
		caught: "TestExploreQueue/depth_1", how: "waits for ever",
	},
	{
		line: "leaving does not ring",
		in:   "rdma/box.Reader.Close",
		old: `
			$r.control.readerBell($r.me).Store(0)
			$r.ringSender()`,
		new:    "$r.control.readerBell($r.me).Store(0)",
		caught: "TestExploreQueue/a_reader_leaves", how: "waits for ever",
	},
	{
		line:   "the sender does not wait for acks",
		in:     "rdma/box.Writer.ringFree",
		old:    "$w.control.ack($r).Load() < $need",
		new:    "$w.control.ack($r).Load() < $need-1",
		caught: "TestExploreQueue/depth_1", how: "corrupt update: seq 2, expected 1",
	},
	{
		line: "the state of a sender is looked at after its clock",
		in:   "rdma/box.Reader.Clock",
		old: `
			$err := $r.env.State()
			$left := $r.control.left().Load()
			$clock := $r.control.clock().Load()`,
		new: `
			$left := $r.control.left().Load()
			$clock := $r.control.clock().Load()
			$err := $r.env.State()`,
		caught: "TestExploreQueue/depth_1", how: "its clock was raised",
	},
	{
		line:   "of two updates in lock-step the newer is passed on first",
		in:     "rdma/box.Relay.pending",
		old:    "$word == 0 || $w < $word",
		new:    "$word == 0 || $w > $word",
		caught: "TestExploreRelay/lock-step", how: "update 2 after 0",
	},
	{
		line:   "the words of two updates in lock-step are looked at once",
		in:     "rdma/box.Relay.pending",
		old:    "$parity, $word, $older = $p, $w, true",
		new:    "$parity, $word, $older = $p, $w, false",
		caught: "TestExploreRelay/lock-step", how: "update 5 after 3",
	},
	{
		line: "what is passed on is given back too early",
		in:   "rdma/box.Relay.Next",
		old:  "$l.sent = $w >> slotBits",
		new: `
			$l.sent = $w >> slotBits
			$l.Done()`,
		caught: "TestExploreRelay/newest", how: "torn",
	},
	{
		line: "an excuse that rests on an older look is taken",
		in:   "rdma/box.Writer.Excuse",
		old: `
			if $w.returned[$r] {
				$w.returned[$r] = false
				return
			}`,
		new:    "",
		caught: "TestExploreReturn/depth_1", how: "is lost, and its reader is back",
	},
	{
		line:   "who has returned stays excused",
		in:     "rdma/box.Relay.Return",
		old:    "$l.w.excused[$l.r.me], $l.w.returned[$l.r.me] = 0, true",
		new:    "$l.w.returned[$l.r.me] = true",
		caught: "TestExploreReturn/depth_1", how: "is lost, and its reader is back",
	},
	{
		line:   "who returns skips what is published",
		in:     "rdma/box.Relay.Return",
		old:    "return $l.w.lost, $l.top()",
		new:    "return $l.top(), $l.top()",
		caught: "TestExploreReturn/depth_1", how: "waits for ever",
	},
	{
		line:   "bsp with one barrier and one latest word",
		in:     "rdma/box.control.latest",
		old:    "offReaders + $r*readerBytes + offLatest + 8*$parity",
		new:    "offReaders + $r*readerBytes + offLatest",
		caught: "TestExplorePlays/bsp", how: "has folded the set", pkg: "libmalt",
	},
}

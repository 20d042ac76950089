package tests

// ofBoxes are those of boxes: newest mode, queues, relays.
var ofBoxes = []mutation{
	{
		line: "2k slots with subsets",
		file: "rdma/box/layout.go",
		old:  "l.Slots = 2*readers + 1", new: "l.Slots = 2 * readers",
		caught: "TestExploreNewest/in_turn", how: "no free slot among 4",
	},
	{
		line: "3k slots in lock-step",
		file: "rdma/box/layout.go",
		old:  "l.Slots = 3*readers + 1", new: "l.Slots = 3 * readers",
		caught: "TestExploreNewest/lock-step", how: "no free slot among 3",
	},
	{
		line:   "seen tested by slot number",
		file:   "rdma/box/newest.go",
		old:    "if w>>slotBits <= r.seen {",
		new:    "if w == 0 || r.payload != nil && &r.payload[0] == &r.env.Slot(int(w & (1<<slotBits - 1)))[headerBytes] {",
		caught: "TestExploreNewest/one_reader", how: "the last update seen is",
	},
	{
		line: "the reader does not pin",
		file: "rdma/box/newest.go",
		old:  "r.control.pin(r.me).Swap(s + 1)", new: "",
		caught: "TestExploreNewest/one_reader", how: "torn",
	},
	{
		line: "the reader does not look at latest again",
		file: "rdma/box/newest.go",
		old:  "if now != w {", new: "if false {",
		caught: "TestExploreNewest/one_reader", how: "corrupt update: seq",
	},
	{
		line:   "no fence at the pin store",
		file:   "rdma/box/newest.go",
		old:    "r.control.pin(r.me).Swap(s + 1)",
		new:    "r.control.pin(r.me).Store(s + 1)",
		caught: "TestExploreNewest/plain_stores", how: "torn",
	},
	{
		line:   "no fence before the look at the pins",
		file:   "rdma/box/writer.go",
		old:    "w.control.clock().Swap(w.clock)",
		new:    "w.control.clock().Store(w.clock)",
		caught: "TestExploreNewest/plain_stores", how: "corrupt update: seq",
	},
	{
		line:   "no fence before the look at the readers' bells",
		file:   "rdma/box/writer.go",
		old:    "w.control.left().Swap(1 + w.seq)",
		new:    "w.control.left().Store(1 + w.seq)",
		caught: "TestExploreAttach/plain_stores", how: "waits for ever",
	},
	{
		line:   "no fence when a reader attaches",
		file:   "rdma/box/reader.go",
		old:    "r.control.readerBell(me).Swap(bell)",
		new:    "r.control.readerBell(me).Store(bell)",
		caught: "TestExploreAttach/plain_stores", how: "waits for ever",
	},
	{
		line: "the writer does not look at the pins",
		file: "rdma/box/newest.go",
		old:  "p-1 < uint64(len(w.busy))", new: "p-1 < 0",
		caught: "TestExploreNewest/one_reader", how: "torn",
	},
	{
		line: "latest before the slot is filled",
		file: "rdma/box/writer.go",
		old:  "	w.slot, w.payload = s, w.env.Slot(s)[headerBytes:headerBytes+w.layout.Spec.Bytes]\n",
		new: "	w.slot, w.payload = s, w.env.Slot(s)[headerBytes:headerBytes+w.layout.Spec.Bytes]\n" +
			"	if w.layout.Spec.Depth == 0 {\n" +
			"		h := w.header\n" +
			"		h.Seq, h.Bytes = w.seq+1, uint64(w.layout.Spec.Bytes)\n" +
			"		h.Encode(w.env.Slot(s))\n" +
			"		w.control.latest(0, 0).Store((w.seq+1)<<slotBits | uint64(s))\n" +
			"	}\n",
		caught: "TestExploreNewest/one_reader", how: "torn",
	},
	{
		line: "bump before latest",
		file: "rdma/box/writer.go",
		old: "	if w.layout.Spec.Depth > 0 {\n		w.publishQueue()\n	} else {\n" +
			"		w.publishNewest(int(s.Clock & uint64(w.layout.parities()-1)))\n	}\n" +
			"	w.slot, w.payload = -1, nil\n	w.tell(s.Clock)\n",
		new:    "	w.tell(s.Clock)\n	w.publishQueue()\n	w.slot, w.payload = -1, nil\n",
		caught: "TestExploreQueue/depth_1", how: "waits for ever",
	},
	{
		line: "ack before the fold",
		file: "rdma/box/queue.go",
		old:  "	r.seen = next\n", new: "	r.seen = next\n	r.releaseQueue(next)\n",
		caught: "TestExploreQueue/depth_1", how: "torn",
	},
	{
		line: "ack = infinity when leaving",
		file: "rdma/box/reader.go",
		old:  "r.control.ack(r.me).Swap(released)", new: "",
		caught: "TestExploreQueue/a_reader_leaves", how: "waits for ever",
	},
	{
		line: "acks do not ring",
		file: "rdma/box/queue.go",
		old:  "	r.ringSender()\n", new: "",
		caught: "TestExploreQueue/depth_1", how: "waits for ever",
	},
	{
		line: "leaving does not ring",
		file: "rdma/box/reader.go",
		old:  "	r.control.readerBell(r.me).Store(0)\n	r.ringSender()\n", new: "	r.control.readerBell(r.me).Store(0)\n",
		caught: "TestExploreQueue/a_reader_leaves", how: "waits for ever",
	},
	{
		line: "the sender does not wait for acks",
		file: "rdma/box/queue.go",
		old:  "w.control.ack(r).Load() < need", new: "w.control.ack(r).Load() < need-1",
		caught: "TestExploreQueue/depth_1", how: "corrupt update: seq 2, expected 1",
	},
	{
		line:   "the state of a sender is looked at after its clock",
		file:   "rdma/box/reader.go",
		old:    "	err := r.env.State()\n	left := r.control.left().Load()\n	clock := r.control.clock().Load()\n",
		new:    "	left := r.control.left().Load()\n	clock := r.control.clock().Load()\n	err := r.env.State()\n",
		caught: "TestExploreQueue/depth_1", how: "its clock was raised",
	},
	{
		line: "of two updates in lock-step the newer is passed on first",
		file: "rdma/box/relay.go",
		old:  "word == 0 || w < word", new: "word == 0 || w > word",
		caught: "TestExploreRelay/lock-step", how: "update 2 after 0",
	},
	{
		line: "what is passed on is given back too early",
		file: "rdma/box/relay.go",
		old:  "	l.sent = w >> slotBits\n	return h, l.r.payload", new: "	l.sent = w >> slotBits\n	l.Done()\n	return h, l.r.payload",
		caught: "TestExploreRelay/newest", how: "torn",
	},
	{
		line: "an excuse that rests on an older look is taken",
		file: "rdma/box/writer.go",
		old:  "if w.returned[r] {", new: "if false {",
		caught: "TestExploreReturn/depth_1", how: "is lost, and its reader is back",
	},
	{
		line: "who has returned stays excused",
		file: "rdma/box/relay_queue.go",
		old:  "	l.w.excused[l.r.me], l.w.returned[l.r.me] = 0, true\n", new: "	l.w.returned[l.r.me] = true\n",
		caught: "TestExploreReturn/depth_1", how: "is lost, and its reader is back",
	},
	{
		line: "who returns skips what is published",
		file: "rdma/box/relay_queue.go",
		old:  "return l.w.lost, l.top()", new: "return l.top(), l.top()",
		caught: "TestExploreReturn/depth_1", how: "waits for ever",
	},
	{
		line: "bsp with one barrier and one latest word",
		file: "rdma/box/control.go",
		old:  "offLatest+8*parity", new: "offLatest",
		caught: "TestExplorePlays/bsp", how: "has folded the set", pkg: "libmalt",
	},
}

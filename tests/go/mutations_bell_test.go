package tests

// ofBells are those of the doorbell.
var ofBells = []mutation{
	{
		line: "the bit of the doorbell is taken back, the count stays",
		file: "rdma/rendezvous/bell.go",
		old:  "b.CompareAndSwap(old, old+1)", new: "b.CompareAndSwap(old, old-1)",
		caught: "TestExploreBell/two_waiters_for_one", how: "sleeps for ever",
	},
	{
		line:   "no look between the bit and the sleep",
		file:   "rdma/rendezvous/bell.go",
		old:    "		if step() {\n			return nil\n		}\n		if sleeper != nil {\n",
		new:    "		if sleeper != nil {\n",
		caught: "TestExploreBell/two_publishers", how: "sleeps for ever",
	},
	{
		line: "wake one",
		file: "rdma/internal/mem/word_explore.go",
		old:  "math.MaxInt32)", new: "1+0*math.MaxInt32)",
		caught: "TestExploreBell/two_waiters_for_one", how: "sleeps for ever", pkg: "rdma/rendezvous",
	},
	{
		line: "a flag that each waiter clears",
		file: "rdma/rendezvous/bell.go",
		old:  "if bell.Load() == asleep {", new: "if bell.And(^uint64(1)) == asleep {",
		caught: "TestExploreBell/two_waiters", how: "sleeps for ever",
	},
	{
		line: "who sleeps for the waiter is told a later value",
		file: "rdma/rendezvous/bell.go",
		old:  "sleeper.Sleep(mem.Low(bell), uint32(asleep))", new: "sleeper.Sleep(mem.Low(bell), uint32(bell.Load()))",
		caught: "TestExploreBell/asleep_elsewhere", how: "sleeps for ever",
	},
	{
		line: "doorbell not rung by whoever notices a death",
		file: "rdma/rendezvous/deaths.go",
		old:  "	d.h.change(rank, dead)\n	d.h.ringRank(d.h.cfg.Rank)\n", new: "	d.h.page.advance(rank, dead)\n",
		caught: "TestExploreBell/deaths", how: "sleeps for ever",
	},
	{
		line: "only the first who notices a death rings",
		file: "rdma/rendezvous/deaths.go",
		old:  "	d.h.ringRank(d.h.cfg.Rank)\n", new: "",
		caught: "TestExploreBell/death_of_who_noticed", how: "sleeps for ever",
	},
	{
		line: "a death wakes only those whose bit is set",
		file: "rdma/rendezvous/bell.go",
		old:  "		alarm(h.page.bell(rank, i))\n", new: "		ring(h.page.bell(rank, i))\n",
		caught: "TestExploreBell/deaths", how: "sleeps for ever",
	},
}

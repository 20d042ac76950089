package tests

// ofBells are those of the doorbell.
var ofBells = []mutation{
	{
		line:   "the bit of the doorbell is taken back, the count stays",
		in:     "rdma/rendezvous.ring",
		old:    "$b.CompareAndSwap($old, $old+1)",
		new:    "$b.CompareAndSwap($old, $old-1)",
		caught: "TestExploreBell/two_waiters_for_one", how: "sleeps for ever",
	},
	{
		line: "no look between the bit and the sleep",
		in:   "rdma/rendezvous.Host.Wait",
		old: `
			if $step() {
				return nil
			}
			if $sleeper != nil {
				$sleeper.Sleep($low, $value)
			} else {
				mem.FutexWait($bell, $asleep, $sleep)
			}`,
		new: `
			if $sleeper != nil {
				$sleeper.Sleep($low, $value)
			} else {
				mem.FutexWait($bell, $asleep, $sleep)
			}`,
		caught: "TestExploreBell/two_publishers", how: "sleeps for ever",
	},
	{
		line:   "wake one",
		in:     "rdma/internal/mem.FutexWake",
		old:    "math.MaxInt32",
		new:    "1+0*math.MaxInt32",
		caught: "TestExploreBell/two_waiters_for_one", how: "sleeps for ever", pkg: "rdma/rendezvous",
	},
	{
		line:   "a flag that each waiter clears",
		in:     "rdma/rendezvous.Host.Wait",
		old:    "bell.Load() == asleep",
		new:    "bell.And(^uint64(1)) == asleep",
		caught: "TestExploreBell/two_waiters", how: "sleeps for ever",
	},
	{
		line:   "who sleeps for the waiter is told a later value",
		in:     "rdma/rendezvous.Host.Wait",
		old:    "$sleeper.Sleep(mem.Low($bell), uint32($asleep))",
		new:    "$sleeper.Sleep(mem.Low($bell), uint32($bell.Load()))",
		caught: "TestExploreBell/asleep_elsewhere", how: "sleeps for ever",
	},
	{
		line: "doorbell not rung by whoever notices a death",
		in:   "rdma/rendezvous.deaths.publish",
		old: `
			$d.h.change($rank, dead)
			$d.h.leaveOut($rank)
			$d.h.ringRank($d.h.cfg.Rank)`,
		new:    "$d.h.page.advance($rank, dead)",
		caught: "TestExploreBell/deaths", how: "sleeps for ever",
	},
	{
		line:   "only the first who notices a death rings",
		in:     "rdma/rendezvous.deaths.publish",
		old:    "$d.h.ringRank($d.h.cfg.Rank)",
		new:    "",
		caught: "TestExploreBell/death_of_who_noticed", how: "sleeps for ever",
	},
	{
		line:   "a death wakes only those whose bit is set",
		in:     "rdma/rendezvous.Host.ringRank",
		old:    "alarm($h.page.bell($rank, $i))",
		new:    "ring($h.page.bell($rank, $i))",
		caught: "TestExploreBell/deaths", how: "sleeps for ever",
	},
}

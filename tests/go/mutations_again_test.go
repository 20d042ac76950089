package tests

// ofReturns are those of ranks that meet again, with new processes in the place of some that died.
var ofReturns = []mutation{
	{
		line:   "meeting again: before a sync that another rank may have begun",
		in:     "rdma/rendezvous.Host.MeetAt",
		old:    "$clock+$ahead+1",
		new:    "$clock+$ahead",
		caught: "TestExploreMeetingAgain/in_lock-step", how: "sleeps for ever",
	},
	{
		line:   "meeting again: each rank decides by itself",
		in:     "rdma/rendezvous.Host.Meets",
		old:    "return $w&1 != 0, true",
		new:    "return all, true",
		caught: "TestExploreMeetingAgain/one_does_not_wait", how: "meets the others, and one does not",
	},
	{
		line:   "meeting again: the rank that decides rings nobody",
		in:     "rdma/rendezvous.Host.Meets",
		old:    "for _, $rank := range $h.members { ring($h.page.bell($rank, 0)) }",
		new:    "",
		caught: "TestExploreMeetingAgain/in_lock-step", how: "sleeps for ever",
	},
}

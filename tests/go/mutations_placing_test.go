package tests

// ofPlacing are those of updates that a network card puts into the reader's memory.
var ofPlacing = []mutation{
	{
		line:   "placing: a room from before the last update is taken",
		in:     "rdma/remote.placing.grant",
		old:    "$p.granted && $r.landed == $p.last",
		new:    "$p.granted",
		caught: "TestExplorePlacing/newest", how: "is in room",
	},
	{
		line:   "placing: an update by TCP leaves the owner its room",
		in:     "rdma/remote.placing.take",
		old:    "$into, $p.room, $p.last = $p.room, room{}, $h.Seq",
		new:    "into, p.last = p.room, h.Seq",
		caught: "TestExplorePlacing/newest", how: "is in room",
	},
	{
		line:   "placing: the header goes out when the last write has begun",
		in:     "rdma/remote.placement.next",
		old:    "!$w.done.Load()",
		new:    "false",
		caught: "TestExplorePlacing/newest", how: "torn",
	},
	{
		line:   "placing: the number goes with the first piece",
		in:     "rdma/remote.placement.next",
		old:    "$p.at+$n == $p.size",
		new:    "$p.at == 0",
		caught: "TestExplorePlacing/newest", how: "torn",
	},
	{
		line:   "rooms: an update by TCP leaves the reader's room out",
		in:     "rdma/remote.rooms.begin",
		old:    "$used, $r.out = $r.out, room{}",
		new:    "used = r.out",
		caught: "TestExplorePlacing/newest", how: "waits for ever",
	},
	{
		line:   "rooms: an update is published from another slot than its room",
		in:     "rdma/box.Replica.Begin",
		old:    "$room != Anywhere",
		new:    "false",
		caught: "TestExplorePlacing/newest,_in_turn", how: "torn", pkg: "rdma/remote",
	},
	{
		line:   "rooms: the memory of a room is used again though its connection has ended",
		in:     "rdma/remote.rooms.void",
		old:    "$was.number != 0 && $written != nil",
		new:    "false",
		caught: "TestExplorePlacing/newest,_cut", how: "torn",
	},
	{
		line:   "rooms: the memory of a room is used again though its owner is dead, unless an update has begun",
		in:     "rdma/remote.rooms.void",
		old:    "$was.number != 0 && $written != nil",
		new:    "r.busy && written != nil",
		caught: "TestExploreFence/newest", how: "torn",
	},
}

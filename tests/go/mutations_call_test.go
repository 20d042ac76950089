package tests

// ofCalls are those of gathers, scatters and collective calls.
var ofCalls = []mutation{
	{
		line: "bsp arrives before it publishes",
		file: "libmalt/scatter.go",
		old:  "	if out != nil {\n", new: "	if out != nil {\n		_ = out.Advance(clock)\n",
		caught: "TestExplorePlays/bsp", how: "has folded the set",
	},
	{
		line: "a clock looked at before the death counts (no reload)",
		file: "libmalt/gather.go",
		old:  "	if dead != nil {\n		if clock, _ = look(); mode", new: "	if dead != nil {\n		if mode",
		caught: "TestExplorePlays/bsp", how: "when it died",
	},
	{
		line: "a rank in an earlier collective is not waited for",
		file: "libmalt/world.go",
		old:  "return n > w.calls.Load(), err", new: "return n > 0, err",
		caught: "TestExplorePlays/bsp,_barrier", how: "has folded the set",
	},
	{
		line: "a rank in a collective is waited for",
		file: "libmalt/world.go",
		old:  "return n > w.calls.Load(), err", new: "return n == ended, err",
		caught: "TestExplorePlays/bsp,_barrier", how: "waits for ever",
	},
	{
		line: "clocks are not levelled",
		file: "libmalt/segment.go",
		old:  "	s.clock.Store(max(s.clock.Load(), clock))\n", new: "",
		caught: "TestExplorePlays/bsp,_barrier", how: "is at clock",
	},
	{
		line: "the others do not hear of a scatter",
		file: "libmalt/scatter.go",
		old:  "	s.changed()\n", new: "",
		caught: "TestExplorePlays/bsp,_barrier", how: "is at clock",
	},
	{
		line: "the header of a call that was given up is not read",
		file: "libmalt/header.go",
		old:  "		c.w.hearAll(rank, objects)\n		s.read()\n", new: "		_ = objects\n		s.read()\n",
		caught: "TestExplorePlays/ssp,_news_of_a_call_given_up", how: "is at clock",
	},
	{
		line:   "the queue is looked at before the sender's state (last update)",
		file:   "libmalt/gather.go",
		old:    "			_, gone := src.inbox.Clock()\n			wait, failed := s.missing(src.rank, gone)\n			wait = wait || !src.inbox.Returned() && s.w.t.State(src.rank) == nil\n			u, ok, err := src.inbox.Next()\n",
		new:    "			u, ok, err := src.inbox.Next()\n			_, gone := src.inbox.Clock()\n			wait, failed := s.missing(src.rank, gone)\n			wait = wait || !src.inbox.Returned() && s.w.t.State(src.rank) == nil\n",
		caught: "TestExplorePlays/notify-ack,_uneven", how: "is not folded",
	},
	{
		line: "a scatter waits for acks of a rank that is away",
		file: "libmalt/scatter.go",
		old:  "case err != nil || away:", new: "case err != nil || away && false:",
		caught: "TestExplorePlays/notify-ack,_barrier", how: "waits for ever",
	},
	{
		line:   "giving up a collective is not told",
		file:   "libmalt/collective.go",
		old:    "	c.w.marks.Set(markGaveUp, c.n<<faultBits|c.blamed())\n",
		new:    "",
		caught: "TestExplorePlays/bsp,_given_up", how: "waits for ever",
	},
	{
		line:   "what was unseen when a collective was given up is read",
		file:   "libmalt/collective.go",
		old:    "		l.back = true\n		s.levelTo(l)\n",
		new:    "		_, _ = s, l\n",
		caught: "TestExplorePlays/notify-ack,_given_up,_plain_stores", how: "corrupt update",
	},
	{
		line: "a plain store takes the mark of a collective back",
		file: "libmalt/collective.go",
		old:  "c.w.marks.Set(markAway, 0)", new: "c.w.marks.Put(markAway, 0)",
		caught: "TestExplorePlays/notify-ack,_given_up,_plain_stores", how: "corrupt update",
	},
	{
		line:   "closing an object is not told",
		file:   "libmalt/channel.go",
		old:    "			errs = append(errs, out.Close())\n",
		new:    "",
		caught: "TestExplorePlays/bsp,_closed", how: "waits for ever",
	},
	{
		line: "rows that a reader has not folded do not come again",
		file: "libmalt/sparse.go",
		old:  "			least = acked\n", new: "			least = min(acked+1, seq-1)\n",
		caught: "TestExplorePlays/sparse", how: "its rows are",
	},
	{
		line: "rows that a reader has folded are not skipped",
		file: "libmalt/gather.go",
		old:  "			src.read = src.held.Seq\n", new: "",
		caught: "TestExplorePlays/sparse", how: "is folded twice",
	},
}

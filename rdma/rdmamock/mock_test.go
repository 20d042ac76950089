package rdmamock

import (
	"malt/rdma"
)

// A mock that is older than its interface does not compile: go generate.
var (
	_ rdma.Transport = (*MockTransport)(nil)
	_ rdma.Outbox    = (*MockOutbox)(nil)
	_ rdma.Inbox     = (*MockInbox)(nil)
	_ rdma.Words     = (*MockWords)(nil)
	_ rdma.Shared    = (*MockShared)(nil)
)

// Package rdmatest is the conformance suite of the transports. It tests the promises
// of rdma.go, line by line, and the guarantees that do not depend on processes: a
// reader gets an update at most once (G2) and never torn (G3), and in newest mode a
// sender never waits for a reader (G4).
//
//	func TestConformance(t *testing.T) {
//		rdmatest.Run(t, func(t *testing.T, n int) []rdma.Transport { return inmem.New(n) })
//	}
//
// A test skips only if the transport returns rdma.ErrNotSupported.
package rdmatest

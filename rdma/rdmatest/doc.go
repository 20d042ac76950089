// Package rdmatest is the conformance suite of the transports: what rdma.go
// promises, line by line, and the guarantees that do not depend on processes:
// an update is got at most once (G2) and never torn (G3), and in newest mode a
// sender never waits for a reader (G4).
//
//	func TestConformance(t *testing.T) {
//		rdmatest.Run(t, func(t *testing.T, n int) []rdma.Transport { return inmem.New(n) })
//	}
//
// A test skips only where the transport says rdma.ErrNotSupported.
package rdmatest

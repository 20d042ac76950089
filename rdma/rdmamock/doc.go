// Package rdmamock holds gomock's output for the interfaces of package rdma. It
// injects faults that no transport produces on demand. Tests of the behaviour of a
// working transport use inmem.
package rdmamock

//go:generate go tool mockgen -write_package_comment=false -source ../rdma.go -destination mock.go -package rdmamock

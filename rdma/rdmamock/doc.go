// Package rdmamock holds gomock's output for the interfaces of package rdma. It
// is for injecting faults that no transport can be made to show at will; what a
// working transport does is tested over inmem.
package rdmamock

//go:generate go tool mockgen -write_package_comment=false -source ../rdma.go -destination mock.go -package rdmamock

//go:build !cgo

package ofi

import (
	"fmt"

	"malt/rdma/fabric"
)

// Open has no way to load a library in this build.
func Open(string, string, int) (fabric.Carrier, error) {
	return nil, fmt.Errorf("%w: %s cannot be loaded by a program that was built without C", fabric.ErrNoLibrary, library)
}

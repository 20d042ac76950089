package shm

import (
	"fmt"
	"runtime/debug"
)

// fault runs f and returns what it faulted with, if it did.
func fault(f func()) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	f()
	return nil
}

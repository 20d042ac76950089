package auto

import (
	"sync/atomic"

	"malt/rdma/internal/mem"
)

// FreeMemory is how many bytes transports can still reserve, and what sets that
// limit: the machine or a control group.
func FreeMemory() (bytes uint64, limit string) { return mem.Free() }

// Descriptors holds what a forked child of this process must close: in each
// entry a descriptor + 1, or 0. It may be read at any time, by C too.
func Descriptors() []atomic.Int32 { return mem.Descriptors() }

// UserMappings is the table of shared memory that users hold, for the fork handler,
// and how many of its entries have been in use.
func UserMappings() ([]mem.UserMapping, *atomic.Uintptr) { return mem.UserMappings() }

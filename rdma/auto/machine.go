package auto

import (
	"io"
	"sync/atomic"

	"malt/rdma/internal/mem"
)

// FreeMemory is how many bytes transports can still reserve, and what sets that
// limit: the machine or a control group.
func FreeMemory() (bytes uint64, limit string) { return mem.Free() }

// Memory is so many bytes of zeroes, which other processes of this user find in /proc by that name and can
// map until the descriptor is closed. A forked child has neither.
func Memory(name string, bytes int) (descriptor io.Closer, b []byte, err error) {
	file, err := mem.NewFile(name, bytes)
	if err != nil {
		return nil, nil, err
	}
	if b, err = file.Map(true); err != nil {
		_ = file.Close()
	}
	return file, b, err
}

// Descriptors holds what a forked child of this process must close: in each
// entry a descriptor + 1, or 0. It may be read at any time, by C too.
func Descriptors() []atomic.Int32 { return mem.Descriptors() }

// UserMappings is the table of shared memory that users hold, for the fork handler,
// and how many of its entries have been in use.
func UserMappings() ([]mem.UserMapping, *atomic.Uintptr) { return mem.UserMappings() }

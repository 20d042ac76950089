//go:build cgo

package ofi

import (
	"os"
	"slices"
	"strconv"
	"strings"

	"malt/rdma/internal/mem"
)

// folders are where device files of RDMA are.
var folders = []string{"/dev/infiniband/", "/dev/cxi", "/dev/hfi1"}

// devices are the descriptors that this process has of them. A child that kept one would keep the
// queues of its parent alive, also when that is dead.
func devices() (list []int) {
	entries, _ := os.ReadDir("/proc/self/fd")
	for _, e := range entries {
		name, _ := os.Readlink("/proc/self/fd/" + e.Name())
		if fd, err := strconv.Atoi(e.Name()); err == nil && slices.ContainsFunc(folders, func(f string) bool { return strings.HasPrefix(name, f) }) {
			list = append(list, fd)
		}
	}
	return list
}

// tracked does what opens or closes devices of c. From then on a forked child closes those that are open, which
// the library may keep.
func (c *carrier) tracked(change func()) {
	others := slices.DeleteFunc(devices(), func(fd int) bool { return slices.Contains(c.devices, fd) })
	for _, fd := range c.devices {
		mem.Untrack(fd)
	}
	if change(); c.o == nil {
		return // it could not be opened
	}
	c.devices = slices.DeleteFunc(devices(), func(fd int) bool { return slices.Contains(others, fd) })
	for _, fd := range c.devices {
		mem.Track(fd)
	}
}

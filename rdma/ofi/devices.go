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

// track has a forked child close what was opened since before.
func (c *carrier) track(before []int) {
	for _, fd := range devices() {
		if !slices.Contains(before, fd) {
			mem.Track(fd)
			c.devices = append(c.devices, fd)
		}
	}
}

// untracked closes descriptors. Those that the library keeps are tracked again.
func (c *carrier) untracked(closes func()) {
	for _, fd := range c.devices {
		mem.Untrack(fd)
	}
	closes()
	for _, fd := range devices() {
		if slices.Contains(c.devices, fd) {
			mem.Track(fd)
		}
	}
}

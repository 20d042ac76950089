package meeting

import (
	"syscall"

	"malt/internal/fleet"
)

func dup(fd int) (int, error) { return syscall.Dup(fd) }

var roles = map[string]fleet.Role{}

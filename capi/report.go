package main

import (
	"fmt"
	"syscall"

	"malt/libmalt"
)

// reportVariable is how a launcher hands a rank the writing end of a pipe, as fd:inode:
// python/malt/_ranks/report.py has what is said there.
const reportVariable = "MALT_REPORT"

// tellLauncher says that this rank has joined a job that goes on after a death, as long as so many
// ranks are left. Until all ranks have said so, a death ends the job.
//
// The inode is compared, because a program between the launcher and the rank may have opened
// something else under that number.
func tellLauncher(c libmalt.Config) {
	var fd int
	var inode uint64
	if !c.Continue {
		return
	}
	if n, _ := fmt.Sscanf(getenv(reportVariable), "%d:%d", &fd, &inode); n != 2 {
		return
	}
	var found syscall.Stat_t
	if syscall.Fstat(fd, &found) != nil || found.Mode&syscall.S_IFMT != syscall.S_IFIFO || found.Ino != inode {
		return
	}
	_, _ = syscall.Write(fd, fmt.Appendf(nil, "{\"survives\": %d}\n", max(1, c.MinRanks)))
}

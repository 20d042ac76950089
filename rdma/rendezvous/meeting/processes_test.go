package meeting

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"malt/internal/fleet"
)

// await reads what a process says up to the line that begins with prefix.
func await(t *testing.T, p *fleet.Process, prefix string) string {
	t.Helper()
	for {
		line, ok := p.Line(fleet.Patience)
		if !ok {
			t.Fatalf("a process has ended without saying %q", prefix)
		}
		if rest, fits := strings.CutPrefix(line, prefix); fits {
			return strings.TrimSpace(rest)
		}
		if strings.HasPrefix(line, "failed") {
			t.Fatalf("%q was expected; it says %s", prefix, line)
		}
	}
}

// A rank that is killed while it waits is noticed at once, and named on all
// others with its host and process.
func TestKilledWhileWaiting(t *testing.T) {
	t.Parallel()
	for victim := range 2 {
		all := fleet.Start(t, "meet", 4)
		store := freePort(t)
		for _, p := range all[:3] { // the last one never comes
			p.Tell(store)
		}
		for _, p := range all[:3] {
			await(t, p, "absent [3]")
		}
		all[victim].Signal(syscall.SIGKILL)
		for rank, p := range all[:3] {
			if rank == victim {
				continue
			}
			says := await(t, p, "failed")
			for _, word := range []string{fmt.Sprintf("rank %d is dead", victim), "connection", "ended"} {
				if !strings.Contains(says, word) {
					t.Errorf("rank %d: %q; expected %q", rank, says, word)
				}
			}
			if process := fmt.Sprintf("process %d)", all[victim].Pid()); victim > 0 && !strings.Contains(says, process) {
				t.Errorf("rank %d: %q; expected %q", rank, says, process)
			}
		}
	}
}

// A process that is stopped is slow, not dead.
func TestStoppedWhileWaiting(t *testing.T) {
	t.Parallel()
	all := fleet.Start(t, "meet", 3)
	store := freePort(t)
	all[0].Tell(store)
	all[1].Tell(store)
	await(t, all[1], "absent [2]")
	all[1].Signal(syscall.SIGSTOP)
	all[2].Tell(store)
	await(t, all[2], "met")
	all[1].Signal(syscall.SIGCONT)
	for _, p := range all[:2] {
		await(t, p, "met")
	}
}

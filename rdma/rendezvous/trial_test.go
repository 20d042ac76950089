package rendezvous

import (
	"errors"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"malt/internal/fleet"
	"malt/rdma"
)

// What ranks do with each other works here, and leaves nothing.
func TestTry(t *testing.T) {
	if err := Try(); err != nil { // the first time the runtime makes descriptors of its own
		t.Fatal(err)
	}
	before := fleet.Holdings()
	if err := Try(); err != nil {
		t.Error(err)
	}
	if left := fleet.Leaks(before); len(left) > 0 {
		t.Errorf("it leaves %q", left)
	}
}

// Who is not permitted what shared memory needs is told what to do without it;
// who only waited in vain, or came twice, is not.
func TestAdvice(t *testing.T) {
	for err, want := range map[error]bool{
		fmt.Errorf("memfd_create: %w", syscall.EPERM): true,
		syscall.ENOSYS: true,
		fmt.Errorf("%w: %w", rdma.ErrRankTaken, syscall.EADDRINUSE): false,
		errFull:                         false,
		errors.New("waited for rank 1"): false,
		&rdma.PeerError{Rank: 1, Err: errors.New("its process has ended by a signal")}: false,
	} {
		if got := strings.Contains(advice(err).Error(), "MALT_TRANSPORT=tcp"); got != want {
			t.Errorf("%v: advice is %v, expected %v", err, got, want)
		}
	}
}

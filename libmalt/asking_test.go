package libmalt_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/rdmatest/inmem"
)

// apart is a transport of ranks on hosts of their own. Their processes answer what they
// are asked, or are stopped and do not.
type apart struct {
	rdma.Transport
	stopped    bool
	connection rdma.Connection
}

func (a *apart) Near() []int                    { return []int{a.Rank()} }
func (a *apart) Connection(int) rdma.Connection { return a.connection }
func (a *apart) Words(ctx context.Context, name string, n int) (rdma.Words, error) {
	w, err := a.Transport.Words(ctx, name, n)
	return &answered{w, a}, err
}

type answered struct {
	rdma.Words
	a *apart
}

func (w *answered) Heard(int) bool { return !w.a.stopped }

// TestWaitAsksBeforeItsEnd: a wait for a process on another host ends at its timeout,
// also where the process is stopped, and names it, unless much is under way there, or something gets lost. Virtual time.
func TestWaitAsksBeforeItsEnd(t *testing.T) {
	const stopped = "its process does not: it is stopped"
	for _, c := range []struct {
		limit          time.Duration
		stopped        bool
		queued, resent int
		says           bool
	}{
		{0, true, 0, 0, false},
		{500 * time.Millisecond, true, 0, 0, true},
		{3 * time.Second, true, 0, 0, true},
		{3 * time.Second, false, 0, 0, false},
		{3 * time.Second, true, 200, 0, true},
		{3 * time.Second, true, 200, 24, true},
		{3 * time.Second, true, 200, 20_000, false},
		{3 * time.Second, true, 20_000, 0, false},
	} {
		t.Run(fmt.Sprintf("%v, stopped %t, queued %d, resent %d", c.limit, c.stopped, c.queued, c.resent), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ts := inmem.New(2)
				for r := range ts {
					ts[r] = &apart{ts[r], c.stopped, rdma.Connection{Address: "192.0.2.1:7", Queued: c.queued, Resent: uint64(c.resent)}}
				}
				release := make(chan struct{})
				for r, err := range run(t.Context(), ts, func(ctx context.Context, w *libmalt.World) error {
					if w.Rank() == 1 {
						<-release
						return w.Barrier(ctx)
					}
					defer close(release)
					for range 2 { // the second finds the timer as the first has left it
						limited, stop := context.WithTimeout(ctx, c.limit)
						defer stop()
						start := time.Now()
						err := w.Barrier(limited)
						if took := time.Since(start); took != c.limit {
							return fmt.Errorf("ended after %v, want %v", took, c.limit)
						}
						if strings.Contains(strings.Join(strings.Fields(fmt.Sprint(err)), " "), stopped) != c.says {
							return fmt.Errorf("%v; a stopped process named: want %t", err, c.says)
						}
					}
					return nil
				}) {
					if err != nil && r == 0 {
						t.Error(err)
					}
				}
			})
		})
	}
}

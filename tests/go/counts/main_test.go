// Package counts holds guards on what calls cost the processor: counts, never times.
package counts

import (
	"context"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"malt/internal/fleet"
	"malt/libmalt"
	"malt/rdma/rendezvous"
	"malt/rdma/shm"
)

func TestMain(m *testing.M) { fleet.Main(m, map[string]fleet.Role{"averages": averages}) }

// calls are as many as averages makes.
const calls = 4

// averages is a rank that averages 1 KB again and again. It tells its thread, and asks for the
// parent before and after each call.
func averages(r *fleet.Rank) error {
	runtime.LockOSThread()
	ctx := context.Background()
	t, err := shm.Open(ctx, rendezvous.Config{Rank: r.Rank, Size: r.Size, Store: r.Store})
	if err != nil {
		return err
	}
	w, err := libmalt.NewWorld(ctx, t, libmalt.Config{})
	if err != nil {
		return err
	}
	v, err := w.NewVector(ctx, []libmalt.Array{{DType: libmalt.Float32, Count: 256}}, "", "")
	if err != nil {
		return err
	}
	if _, err := v.Sync(ctx, 1); err != nil { // what is made at first use
		return err
	}
	r.Say("thread %d", unix.Gettid())
	r.Hear()
	for range calls {
		unix.Getppid()
		_, err := v.Sync(ctx, 1)
		unix.Getppid()
		if err != nil {
			return err
		}
	}
	return w.Close()
}

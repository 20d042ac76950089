package libmalt_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"malt/libmalt"
)

// TestResumedCallMayMove: a call that kept its place goes on with the memory that
// it is made again with; what it was begun with is neither read nor written any
// more.
func TestResumedCallMayMove(t *testing.T) {
	refused := make(chan struct{})
	expired, stop := context.WithCancel(context.Background())
	stop()
	// Longer than what one queue holds, so that sending goes on after the timeout.
	const n = 3 << 20
	value := func(rank int) []byte {
		b := make([]byte, n)
		fill(b, float32(rank+1))
		return b
	}
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		if w.Rank() == 0 {
			old := value(0)
			if err := wantErr(w.AllReduce(expired, old, libmalt.Float32, "sum"), libmalt.ErrTimeout); err != nil {
				return err
			}
			if !bytes.Equal(old, value(0)) {
				return fmt.Errorf("a call that timed out has changed its data")
			}
			fill(old, 1e9)
			if err := wantErr(w.AllReduce(ctx, old[4:], libmalt.Float32, "sum"), libmalt.ErrBusy); err != nil {
				return err
			}
			defer func() {
				if old[0] != 0x28 || old[n-1] != 0x4e { // 1e9
					t.Error("the memory of the first call was written")
				}
			}()
			close(refused)
		} else {
			<-refused
		}
		data := value(w.Rank())
		if err := w.AllReduce(ctx, data, libmalt.Float32, "sum"); err != nil {
			return err
		}
		want := make([]byte, n)
		fill(want, 3)
		if !bytes.Equal(data, want) {
			return fmt.Errorf("allreduce gave %x…, want %x…", data[:4], want[:4])
		}
		return nil
	})
}

// TestResumedCallKeepsItsLength: the bytes of an allgather are no part of what
// tells it from another one, but once it is begun they are.
func TestResumedCallKeepsItsLength(t *testing.T) {
	refused := make(chan struct{})
	expired, stop := context.WithCancel(context.Background())
	stop()
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		if w.Rank() == 0 {
			if _, err := w.AllGather(expired, []byte("begun")); err == nil {
				return fmt.Errorf("an allgather of one rank out of two is through")
			}
			_, err := w.AllGather(ctx, []byte("longer"))
			if err := wantErr(err, libmalt.ErrInvalid); err != nil {
				return err
			}
			close(refused)
		} else {
			<-refused
		}
		parts, err := w.AllGather(ctx, []byte("begun"))
		if err == nil && (string(parts[0]) != "begun" || string(parts[1]) != "begun") {
			err = fmt.Errorf("got %q", parts)
		}
		return err
	})
}

// TestSyncTimeoutKeepsItsPlace: the scatter of a sync that ran into its timeout
// is not made twice.
func TestSyncTimeoutKeepsItsPlace(t *testing.T) {
	for _, consistency := range []string{"bsp", "ssp:0", "notify-ack:1"} {
		gate := make(chan struct{})
		job(t, 2, func(ctx context.Context, w *libmalt.World) error {
			v, err := vector(ctx, w, 10, "consistency="+consistency)
			if err != nil {
				return err
			}
			if w.Rank() == 1 {
				<-gate
				_, err := v.Sync(ctx, 1)
				return err
			}
			for range 3 {
				short, stop := context.WithTimeout(ctx, time.Millisecond)
				_, err := v.Sync(short, 1)
				stop()
				if err := wantErr(err, libmalt.ErrTimeout); err != nil {
					return err
				}
				if !strings.Contains(err.Error(), "rank 1 (") {
					return fmt.Errorf("%q does not say where rank 1 is", err)
				}
				_, err = v.Gather(ctx, "")
				if err := wantErr(err, libmalt.ErrBusy); err != nil {
					return err
				}
			}
			close(gate)
			k, err := v.Sync(ctx, 1)
			if err == nil && (k != 1 || v.Clock() != 1) {
				err = fmt.Errorf("%s: folded %d at clock %d, want 1 at 1", consistency, k, v.Clock())
			}
			return err
		})
	}
}

// TestCancelledGatherCanBeMadeAgain.
func TestCancelledGatherCanBeMadeAgain(t *testing.T) {
	gate := make(chan struct{})
	job(t, 2, func(ctx context.Context, w *libmalt.World) error {
		v, err := vector(ctx, w, 10, "")
		if err != nil {
			return err
		}
		if w.Rank() == 1 {
			<-gate
			_, err := v.Sync(ctx, 1)
			return err
		}
		short, stop := context.WithTimeout(ctx, time.Millisecond)
		defer stop()
		_, err = v.Sync(short, 1)
		if err := wantErr(err, libmalt.ErrTimeout); err != nil {
			return err
		}
		if err := v.Cancel(); err != nil {
			return err
		}
		close(gate)
		_, err = v.Gather(ctx, "")
		return err
	})
}

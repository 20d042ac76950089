package shm

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"

	"malt/internal/fleet"
	"malt/rdma"
)

// fewDescriptors lets this process open n more descriptors until restore is
// called.
func fewDescriptors(t *testing.T, n int) (restore func()) {
	t.Helper()
	const name = syscall.RLIMIT_NOFILE
	var was syscall.Rlimit
	if err := syscall.Getrlimit(name, &was); err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Open("/dev/null", syscall.O_RDONLY|syscall.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	few := was
	few.Cur = uint64(fd + 100) // beyond all that are open
	if err := syscall.Setrlimit(name, &few); err != nil {
		t.Fatal(err)
	}
	taken := []int{fd}
	for {
		more, err := syscall.Dup(fd)
		if err != nil {
			break
		}
		taken = append(taken, more)
	}
	for range n {
		syscall.Close(taken[len(taken)-1])
		taken = taken[:len(taken)-1]
	}
	return func() {
		for _, fd := range taken {
			syscall.Close(fd)
		}
		if err := syscall.Setrlimit(name, &was); err != nil {
			t.Error(err)
		}
	}
}

// Whichever descriptor is the one too many: the call says so, or runs into its
// timeout where the other rank cannot answer; nothing is left open or mapped, and
// with room again all works, under the same names.
func TestOutOfDescriptors(t *testing.T) {
	all := open(t, 2)
	s := rdma.Spec{Bytes: 1 << 20}
	exchange := func(ctx context.Context) (done int, err error) {
		out, err := all[0].Publish(ctx, "box", s, []int{1})
		if err != nil {
			return 0, err
		}
		ins, err := all[1].Subscribe(ctx, "box", s, []int{0})
		if err == nil {
			return 2, errors.Join(ins[0].Close(), out.Close())
		}
		if failed := out.Close(); failed != nil {
			t.Error(failed)
		}
		return 1, err
	}
	if _, err := exchange(context.Background()); err != nil {
		t.Fatal(err)
	}
	before := fleet.Holdings()
	var ends [3]int
	for n := range 8 {
		fleet.Growing(t, func(ctx context.Context) error {
			restore := fewDescriptors(t, n)
			done, err := exchange(ctx)
			_, words := all[0].Words(ctx, "words", n+1) // the other does not come
			restore()
			if errors.Is(err, context.DeadlineExceeded) && (done == 0 || n == 7) {
				return err // with more time it succeeds, or says what is missing
			}
			if n == 0 && done > 0 {
				return errors.New("with no descriptor it succeeds") // one of an earlier test was given back meanwhile
			}
			ends[done]++
			if full := errors.Is(err, syscall.EMFILE) || done == 1 && errors.Is(err, context.DeadlineExceeded); done < 2 != full {
				t.Errorf("with %d descriptors: %v", n, err)
			}
			if !errors.Is(words, syscall.EMFILE) && !errors.Is(words, context.DeadlineExceeded) {
				t.Errorf("words with %d descriptors: %v", n, words)
			}
			return nil
		})
		if done, err := exchange(context.Background()); done != 2 || err != nil {
			t.Errorf("after %d descriptors: %v", n, err)
		}
	}
	if ends[0] == 0 || ends[1] == 0 || ends[2] == 0 {
		t.Errorf("%d publications failed, %d subscriptions, and %d did not", ends[0], ends[1], ends[2])
	}
	// The last words are still announced, for the call that goes on with them.
	var both sync.WaitGroup
	for _, tr := range all {
		both.Go(func() {
			w, err := tr.Words(context.Background(), "words", 8)
			if err == nil {
				err = w.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if leaks := fleet.Leaks(before); len(leaks) > 0 {
		t.Errorf("left: %q", leaks)
	}
}

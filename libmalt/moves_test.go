// The race detector makes this slow and finds nothing that other tests do not.

//go:build !race

package libmalt_test

import (
	"context"
	"errors"
	"fmt"
	"go/token"
	"go/types"
	"os"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"malt/libmalt"
	"malt/libmalt/reduce"
)

// TestBytesMoved: a call sends, reads and writes as many bytes as docs/developers/benchmarks.md
// says, no more and no fewer. It is a guard on counts, never on a time: one more
// copy, one more pass over memory, or a block too long for a cache shows.
//
// Counted is what goes through reduce.Copy and reduce.Fold. That nothing else moves
// values is looked after by TestBytesMoveWhereTheyAreCounted in tests/go.
func TestBytesMoved(t *testing.T) {
	const bytes, inPlace, byBoxes = 15 << 16, "consistency=bsp", "consistency=bsp graph=ring"
	for _, op := range []struct {
		row, options string
		before, call func(ctx context.Context, w *libmalt.World, v *libmalt.Vector) error
		ranks        string // that do what the row says: all, "first" or "others"
	}{
		{row: "`scatter`", options: "consistency=async", call: scatterOnce},
		{row: "`gather` of j updates", options: "consistency=async", before: scatterOnce, call: gatherOnce},
		{row: "`gather` of j updates", options: "consistency=async graph=ring", before: scatterOnce, call: gatherOnce},
		{row: "`sync` on `all`, `bsp`, with `mean`, `sum`, `min` or `max`", options: inPlace, call: syncOnce},
		{row: "any other `sync`", options: byBoxes, call: syncOnce},
		{row: "`sync` of changes", options: "fold=sum-changes consistency=bsp", call: syncOnce},
		{row: "`v.allreduce` on `all`, `bsp`", options: inPlace, call: allReduceOnce},
		{row: "`malt.allreduce`, any other `v.allreduce`", options: byBoxes, call: allReduceOnce},
		{row: "`v.broadcast`, the root", options: inPlace, call: broadcastOnce, ranks: "first"},
		{row: "`v.broadcast`, another rank", options: inPlace, call: broadcastOnce, ranks: "others"},
	} {
		for _, size := range []int{3, 5} { // in ring not all send to all, and bytes have a third and a fifth
			t.Run(fmt.Sprintf("%s/%s/%d", op.row, op.options, size), func(t *testing.T) {
				neighbours := size - 1
				if strings.Contains(op.options, "ring") {
					neighbours = 1
				}
				want, err := promised(op.row, map[string]int{"S": bytes, "N": size, "k": neighbours, "j": neighbours})
				if err != nil {
					t.Fatal(err)
				}
				seen := &watchers{by: map[int]*watcher{}}
				reduce.Observe(seen.see)
				defer reduce.Observe(nil)
				ctx := background(t)
				check(t, run(ctx, shared(t, size), func(_ context.Context, w *libmalt.World) error {
					v, err := vector(ctx, w, bytes/4, op.options)
					if err != nil {
						return err
					}
					for range 3 { // the first makes what is made at first use
						if op.before != nil {
							if err := op.before(ctx, w, v); err != nil {
								return err
							}
						}
						if err := w.Barrier(ctx); err != nil {
							return err
						}
						sent := sentBytes(v)
						got, err := seen.during(func() error { return op.call(ctx, w, v) })
						if err != nil {
							return err
						}
						got.sent = sentBytes(v) - sent
						if err := w.Barrier(ctx); err != nil {
							return err
						}
						if op.ranks != "" && (op.ranks == "first") != (w.Rank() == 0) {
							continue
						}
						if got.read != want.read || got.written != want.written {
							return fmt.Errorf("read %d and wrote %d bytes; docs/developers/benchmarks.md says %d and %d", got.read, got.written, want.read, want.written)
						}
						collective := strings.Contains(op.row, "v.") // not in the statistics of a vector
						if !collective && got.sent != want.sent {
							return fmt.Errorf("counted %d bytes as sent; docs/developers/benchmarks.md says %d", got.sent, want.sent)
						}
					}
					return nil
				}))
			})
		}
	}
}

func scatterOnce(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error {
	_, err := v.Scatter(ctx, nil, 1)
	return err
}

func gatherOnce(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error {
	n, err := v.Gather(ctx, "")
	if n == 0 && err == nil {
		return errors.New("nothing was folded")
	}
	return err
}

func allReduceOnce(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error {
	return v.AllReduce(ctx, "mean")
}

func broadcastOnce(ctx context.Context, _ *libmalt.World, v *libmalt.Vector) error {
	return v.Broadcast(ctx, 0)
}

func sentBytes(v *libmalt.Vector) (sum int) {
	stats, err := v.Stats()
	if err != nil {
		return -1
	}
	for _, e := range stats.Edges {
		sum += int(e.SentBytes)
	}
	return sum
}

// traffic is what a call has moved.
type traffic struct{ sent, read, written int }

// promised is what a row of docs/developers/benchmarks.md says of a call.
func promised(row string, numbers map[string]int) (traffic, error) {
	text, err := os.ReadFile("../docs/developers/benchmarks.md")
	if err != nil {
		return traffic{}, err
	}
	line := regexp.MustCompile(`(?m)^\| ` + regexp.QuoteMeta(row) + ` \|(.*)\|(.*)\|(.*)\|$`).FindStringSubmatch(string(text))
	if line == nil {
		return traffic{}, fmt.Errorf("docs/developers/benchmarks.md has no row %s of three more columns", row)
	}
	var values [3]int
	for i, formula := range line[1:] {
		if values[i], err = evaluate(formula, numbers); err != nil {
			return traffic{}, fmt.Errorf("docs/developers/benchmarks.md, row %s: %w", row, err)
		}
	}
	return traffic{values[0], values[1], values[2]}, nil
}

// evaluate computes "2 · (N − 1)/N · S, …"; nothing is 0.
func evaluate(formula string, numbers map[string]int) (int, error) {
	formula, _, _ = strings.Cut(strings.TrimSpace(formula), ",")
	if formula == "" {
		return 0, nil
	}
	text := strings.NewReplacer("·", "*", "−", "-").Replace(formula)
	for name, n := range numbers {
		text = strings.ReplaceAll(text, name, strconv.Itoa(n)+".0")
	}
	value, err := types.Eval(token.NewFileSet(), nil, token.NoPos, text)
	if err != nil {
		return 0, fmt.Errorf("%q is no formula of S, N, k and j: %w", formula, err)
	}
	return strconv.Atoi(value.Value.ExactString())
}

// watchers are those of the threads that make calls.
type watchers struct {
	mu sync.Mutex
	by map[int]*watcher
}

// watcher sees what one thread moves, and what of it still is in the thread's cache:
// a line that it has touched within the last cacheBytes is not read from memory.
type watcher struct {
	moved traffic
	total uint64 // bytes touched
	last  map[uintptr]uint64
}

const (
	cacheBytes = 256 << 10 // of a core alone, on small machines
	lineBytes  = 64
)

func (w *watchers) see(at uintptr, bytes int, written bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if t := w.by[syscall.Gettid()]; t != nil {
		t.see(at, bytes, written)
	}
}

// during watches this goroutine in a call.
func (w *watchers) during(call func() error) (traffic, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	id, t := syscall.Gettid(), &watcher{last: map[uintptr]uint64{}}
	set := func(t *watcher) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.by[id] = t
	}
	set(t)
	err := call()
	set(nil)
	return t.moved, err
}

func (t *watcher) see(at uintptr, bytes int, written bool) {
	for end := at + uintptr(bytes); at < end; {
		line := at / lineBytes
		n := int(min(end, (line+1)*lineBytes) - at)
		if last, ok := t.last[line]; written {
			t.moved.written += n
		} else if !ok || t.total-last > cacheBytes {
			t.moved.read += n
		}
		t.total += uint64(n)
		t.last[line] = t.total
		at += uintptr(n)
	}
}

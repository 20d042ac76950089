// Package dial tries several addresses of the same peer side by side, and returns the
// first connection, or the errors of all.
//
//	c, errs := dial.First(ctx, len(addresses), dial.Apart, func(ctx context.Context, i int) (net.Conn, error) { … })
package dial

import (
	"context"
	"io"
	"time"
)

// Apart is how long an address that does not answer is waited for before the
// next one is tried as well: longer than a connection takes around the world,
// and hardly noticed where the first address is a wrong one.
const Apart = 250 * time.Millisecond

// First makes up to n attempts, each apart after the one before, or at once when
// that has failed, and returns the first that succeeds. The others are told by
// their context, waited for, and closed if they succeed all the same. When all
// fail it returns their errors, by attempt.
func First[C io.Closer](ctx context.Context, n int, apart time.Duration, attempt func(ctx context.Context, i int) (C, error)) (won C, errs []error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type outcome struct {
		i   int
		c   C
		err error
	}
	outcomes := make(chan outcome)
	started, ended := 0, 0
	start := func() {
		i := started
		started++
		go func() {
			c, err := attempt(ctx, i)
			outcomes <- outcome{i, c, err}
		}()
	}
	errs = make([]error, n)
	success := false
	next := time.NewTimer(apart)
	defer next.Stop()
	if n > 0 {
		start()
	}
	for ended < started {
		select {
		case o := <-outcomes:
			ended++
			switch {
			case o.err == nil && !success:
				won, success = o.c, true
				cancel()
			case o.err == nil:
				o.c.Close()
			default:
				errs[o.i] = o.err
			}
			if o.err == nil || success || started == n || ctx.Err() != nil {
				continue
			}
		case <-next.C:
			if success || started == n || ctx.Err() != nil {
				continue
			}
		}
		start()
		next.Reset(apart)
	}
	if success {
		return won, nil
	}
	for i := started; i < n; i++ {
		errs[i] = context.Cause(ctx)
	}
	return won, errs
}

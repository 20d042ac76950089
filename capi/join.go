package main

/*
#include "malt.h"
#include "malt_internal.h"
*/
import "C"

import (
	"context"
	"errors"
	"time"

	"malt/libmalt"
)

// joining is a Join under way. It has a goroutine of its own, because malt_init
// comes back from its wait (every 50 ms, from Python), while the other ranks,
// which have heard of this one by then, must not see it go and come.
type joining struct {
	options string
	timeout time.Duration
	cancel  context.CancelFunc
	waited  bool          // a thread is in malt_init; guarded by life
	done    chan struct{} // closed when world and err are set
	world   *libmalt.World
	err     error
}

//export maltGoInit
func maltGoInit(options *C.char, timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	s, err := text(options, "options")
	if err == nil {
		err = join(s, int64(timeoutMs))
	}
	return fail(err)
}

func join(options string, timeoutMs int64) error {
	j, err := enterJoining(options)
	if err != nil {
		return err
	}
	// Join ends by itself at the job's timeout, with the better message; a second
	// more lets it.
	ctx := within(timeoutMs, j.timeout+time.Second)
	defer ctx.end()
	arrived := j.wait(ctx)

	life.Lock()
	defer life.Unlock()
	j.waited = false
	if !arrived {
		return &mistake{libmalt.ErrTimeout, "malt: other ranks have not arrived yet; call malt_init again to go on waiting for them"}
	}
	pending = nil
	if j.err != nil {
		return j.err
	}
	publish(j.world)
	return nil
}

// enterJoining makes the calling thread the one that waits for the Join under
// way, which it starts if there is none.
func enterJoining(options string) (*joining, error) {
	life.Lock()
	defer life.Unlock()
	switch j := pending; {
	case world.Load() != nil:
		return nil, &mistake{errNotInit, "malt: malt_init has been called already; call malt_finalize before joining anew"}
	case j != nil && j.waited:
		return nil, &mistake{libmalt.ErrBusy, "malt: another thread is in malt_init"}
	case j != nil && j.options != options:
		return nil, &mistake{libmalt.ErrBusy, "malt: malt_init with other options ran into its timeout and keeps its place; make that call again, or call malt_cancel(0) first"}
	case j != nil:
		j.waited = true
		return j, nil
	}
	config, err := libmalt.ConfigFromEnv(getenv)
	if err == nil {
		err = config.Set(options)
	}
	if err != nil {
		return nil, err
	}
	pending = startJoining(options, config)
	return pending, nil
}

func startJoining(options string, c libmalt.Config) *joining {
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	j := &joining{options: options, timeout: c.Timeout, cancel: cancel, waited: true, done: make(chan struct{})}
	go func() {
		defer cancel()
		defer close(j.done)
		if j.world, j.err = libmalt.Join(ctx, c); j.err == nil && errors.Is(ctx.Err(), context.Canceled) {
			j.err = j.world.Close()
			j.world = nil
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			j.err = &mistake{libmalt.ErrCancelled, "malt: malt_init was given up by malt_cancel or malt_finalize"}
		}
	}()
	return j
}

// wait tells whether the Join ended before ctx did.
func (j *joining) wait(ctx context.Context) bool {
	select {
	case <-j.done:
		return true
	default:
	}
	select {
	case <-j.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// cancelJoining gives up a malt_init that waits, in another thread, or keeps its
// place.
func cancelJoining() {
	life.Lock()
	defer life.Unlock()
	if j := pending; j != nil {
		j.cancel()
		if !j.waited {
			<-j.done
			pending = nil
		}
	}
}

// publish makes w the job of this process.
func publish(w *libmalt.World) {
	world.Store(w)
	C.maltc_joined(C.int32_t(w.Rank()), C.int32_t(w.Size()), C.int32_t(w.LocalRank()), C.int64_t(w.Generation()))
	hideFromChildren(w)
}

//export maltGoFinalize
func maltGoFinalize() (status C.malt_status) {
	defer caught(&status)
	cancelJoining()
	life.Lock()
	defer life.Unlock()
	w := world.Swap(nil)
	if w == nil {
		return C.MALT_OK
	}
	C.maltc_left()
	err := w.Close()
	objects.each(func(h uint64, o any) {
		if _, ok := o.(*object); ok {
			objects.remove(h)
		}
	})
	former = append(former, w)
	inbox.clear()
	return fail(err)
}

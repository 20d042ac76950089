package main

/*
#include "malt.h"
#include "malt_internal.h"
*/
import "C"

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"malt/internal/say"
	"malt/libmalt"
	"malt/rdma/rendezvous"
	"malt/rdma/rendezvous/meeting"
)

// joining is a Join under way. It has a goroutine of its own, because malt_init
// comes back from its wait (every 50 ms, from Python), while the other ranks,
// which have heard of this one by then, must not see it go and come.
type joining struct {
	options string
	config  libmalt.Config
	cancel  context.CancelFunc
	waited  bool          // a thread is in malt_init; guarded by life
	done    chan struct{} // closed when world and err are set
	world   *libmalt.World
	err     error

	// What was last found about the ranks that are missing: for the thread that
	// waits.
	asked  time.Time
	absent *say.Error
	told   atomic.Pointer[say.Error] // by the meeting of several machines
}

//export maltGoInit
func maltGoInit(options *C.char, timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	s, err := text(options, "options", maxWord)
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
	ctx := within(timeoutMs, j.config.Timeout+time.Second)
	defer ctx.end()
	arrived := j.wait(ctx)
	if !arrived {
		j.look()
	}

	life.Lock()
	defer life.Unlock()
	j.waited = false
	if !arrived {
		return say.As(libmalt.ErrTimeout, j.absent)
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
		return nil, say.Errorf(errNotInit, "malt_init has been called already").Try("Call malt_finalize before joining again.")
	case j != nil && j.waited:
		return nil, say.Errorf(libmalt.ErrBusy, "another thread is in malt_init")
	case j != nil && j.options != options:
		return nil, say.Errorf(libmalt.ErrBusy, "malt_init with other options, which timed out, keeps its place").
			Try("Make that call again, or call malt_cancel(0) first.")
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
	config.Version = C.GoString(C.malt_version())
	pending = startJoining(options, config)
	return pending, nil
}

func startJoining(options string, c libmalt.Config) *joining {
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	j := &joining{options: options, config: c, cancel: cancel, waited: true, done: make(chan struct{})}
	c.Report = func(absent []int, detail string) {
		if len(absent) == 0 {
			j.told.Store(nil)
			return
		}
		e := missing(absent, c.Size, meeting.ToCome)
		if detail != "" {
			e.Where += "; " + detail
		}
		j.told.Store(e)
	}
	go func() {
		defer cancel()
		defer close(j.done)
		if j.world, j.err = libmalt.Join(ctx, c); j.err == nil && errors.Is(ctx.Err(), context.Canceled) {
			j.err = j.world.Close()
			j.world = nil
		}
		if errors.Is(ctx.Err(), context.Canceled) {
			j.err = say.Errorf(libmalt.ErrCancelled, "malt_init was given up by malt_cancel or malt_finalize")
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

// look finds out which ranks are missing, at most once a second: the caller may
// be back in 50 ms.
func (j *joining) look() {
	if !j.asked.IsZero() && time.Since(j.asked) < time.Second {
		return
	}
	j.absent = say.Errorf(nil, "the job has not started yet").In("malt.init").At("all ranks have been started, but not all have joined")
	if s := j.told.Load(); s != nil {
		j.absent = s
	} else if ranks := j.config.Absent(); len(ranks) > 0 {
		j.absent = missing(ranks, j.config.Size, "Start every rank, with the same MALT_STORE, as malt run does.")
	}
	j.asked = time.Now()
}

// missing names the ranks, the first of them if there are many.
func missing(ranks []int, size int, toCome string) *say.Error {
	const most = 8
	named := rendezvous.Ranks(ranks[:min(len(ranks), most)])
	if n := len(ranks) - most; n > 0 {
		named += fmt.Sprintf(" and %d more", n)
	}
	return say.Errorf(nil, "the job has not started yet").In("malt.init").At("%s of %d not here yet", named, size).Try("%s", toCome)
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
	w := world.Load()
	if w == nil {
		return C.MALT_OK
	}
	err := w.Close()
	if errors.Is(err, libmalt.ErrBusy) {
		return fail(err) // nothing was closed
	}
	world.Store(nil)
	C.maltc_left()
	objects.each(func(h uint64, o any) {
		if o, ok := o.(*object); ok && o.world == w {
			objects.remove(h)
		}
	})
	former = append(former, w)
	inbox.clear()
	return fail(err)
}

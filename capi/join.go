package main

/*
#include "malt.h"
#include "malt_internal.h"
*/
import "C"

import (
	"cmp"
	"context"
	"errors"
	"sync/atomic"
	"time"

	"malt/internal/say"
	"malt/libmalt"
	"malt/rdma"
	"malt/rdma/rendezvous/meeting"
)

// joining is a Join under way. It has a goroutine of its own, so that the thread in
// malt_init can look up.
type joining struct {
	config libmalt.Config
	cancel context.CancelFunc
	done   chan struct{} // closed when world and err are set
	world  *libmalt.World
	err    error
	told   atomic.Pointer[say.Error] // of the ranks that are missing, by the meeting of several machines
}

//export maltGoInit
func maltGoInit(options C.maltc_text, timeoutMs C.int64_t) (status C.malt_status) {
	defer caught(&status)
	var a args
	if s := a.text(options, "options", maxWord); a.err == nil {
		a.is(join(s, int64(timeoutMs)))
	}
	return fail(a.err)
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
	late := j.wait(ctx)

	life.Lock()
	defer life.Unlock()
	pending = nil
	if err := cmp.Or(late, j.err); err != nil {
		hide()
		reportGaveUp()
		if j.config.Restart > 0 && errors.Is(err, rdma.ErrLeft) {
			reportLate()
		}
		return err
	}
	publish(j.world)
	if j.config.Restart == 0 {
		j.config.Joined()
	}
	return nil
}

// enterJoining starts to join.
func enterJoining(options string) (*joining, error) {
	life.Lock()
	defer life.Unlock()
	switch {
	case world.Load() != nil:
		return nil, say.Errorf(errNotInit, "malt_init has been called already").Try("Call malt_finalize before joining again.")
	case pending != nil:
		return nil, say.Errorf(libmalt.ErrBusy, "another thread is in malt_init")
	}
	config, err := configured(options)
	if err != nil {
		return nil, err
	}
	config.Joined = reporting(config)
	show(&config)
	pending = startJoining(config)
	return pending, nil
}

// configured is what the environment and the options say.
func configured(options string) (libmalt.Config, error) {
	config, err := libmalt.ConfigFromEnv(getenv)
	if err == nil {
		err = config.Set(options)
	}
	config.Version = C.GoString(C.malt_version())
	return config, err
}

//export maltGoWitness
func maltGoWitness(options C.maltc_text) (status C.malt_status) {
	defer caught(&status)
	var a args
	s := a.text(options, "options", maxWord)
	if a.err != nil {
		return fail(a.err)
	}
	config, err := configured(s)
	if err == nil {
		err = libmalt.Witness(config, reporting(config))
	}
	if err == nil {
		reportLast("left")
	} else if errors.Is(err, rdma.ErrExpelled) {
		reportLast("expelled")
	}
	return fail(err)
}

func startJoining(c libmalt.Config) *joining {
	ctx, cancel := context.WithTimeout(context.Background(), c.Timeout)
	j := &joining{config: c, cancel: cancel, done: make(chan struct{})}
	c.Report = func(absent []int, detail, do string) {
		if len(absent) == 0 {
			j.told.Store(nil)
			return
		}
		e := missing(absent, c.Size, cmp.Or(do, meeting.ToCome))
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
			j.err = say.Errorf(libmalt.ErrCancelled, "malt_finalize ended malt_init")
		}
	}()
	return j
}

// lookEvery is how often the thread in malt_init looks up.
const lookEvery = 50 * time.Millisecond

// wait waits for the end of the Join. An error says that the time was up before, and which
// ranks are missing.
func (j *joining) wait(ctx *deadline) error {
	for {
		if ctx.Err() == nil {
			pause := time.NewTimer(min(lookEvery, ctx.left()))
			select {
			case <-j.done:
				pause.Stop()
				return nil
			case <-pause.C:
				if C.maltc_look() != 0 {
					ctx.interrupt()
				}
				continue
			}
		}
		select {
		case <-j.done:
			return nil
		default:
		}
		absent := say.As(libmalt.ErrTimeout, j.absent())
		if !ctx.GoOn(absent) {
			j.cancel()
			<-j.done
			return absent
		}
	}
}

// absent says which ranks are missing.
func (j *joining) absent() *say.Error {
	if s := j.told.Load(); s != nil {
		return s
	}
	if ranks := j.config.Absent(); len(ranks) > 0 {
		return missing(ranks, j.config.Size, "Start every rank, with the same MALT_STORE, as malt run does.")
	}
	return say.Errorf(nil, "the job has not started yet").In("malt.init").At("all ranks have been started, but not all have joined")
}

// missing names the ranks.
func missing(ranks []int, size int, toCome string) *say.Error {
	return say.Errorf(nil, "the job has not started yet").In("malt.init").At("%s of %d not here yet", say.Ranks(ranks), size).Try("%s", toCome)
}

// cancelJoining ends a malt_init that waits in another thread.
func cancelJoining() {
	life.Lock()
	defer life.Unlock()
	if pending != nil {
		pending.cancel()
	}
}

// publish makes w the job of this process.
func publish(w *libmalt.World) {
	w.OnDeath(tell)
	w.OnTrouble(warn)
	world.Store(w)
	C.maltc_joined(C.int32_t(w.Rank()), C.int32_t(w.Size()), C.int32_t(w.LocalRank()), C.int64_t(w.Generation()))
	hideFromChildren(w)
}

// succeed makes next, in which ranks are back, the job of this process in the place of w. It
// returns what v is there.
func succeed(w, next *libmalt.World, v *libmalt.Vector) *libmalt.Vector {
	life.Lock()
	defer life.Unlock()
	objects.each(func(h uint64, o any) {
		if o, ok := o.(*object); ok && o.world == w {
			heir := next.Heir(o.vector)
			objects.replace(h, &object{exchanger: heir, world: next, vector: heir})
		}
	})
	former = append(former, w)
	publish(next)
	return next.Heir(v)
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
	ctx := within(-1, w.Timeout())
	defer ctx.end()
	err := w.Leave(ctx)
	if errors.Is(err, libmalt.ErrBusy) {
		return fail(err) // nothing was closed
	}
	reportLast("left")
	world.Store(nil)
	hide()
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

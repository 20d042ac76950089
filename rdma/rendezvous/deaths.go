package rendezvous

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"syscall"

	"malt/rdma"
	"malt/rdma/internal/mem"
)

// deaths watches the processes of all members, and publishes in the page the end
// of each. Every rank does so by itself: whoever is first changes the state and
// rings everybody, the others ring their own bells, so that it does not matter
// if the first is killed in between, or is stopped.
//
// What is watched is the process itself, by a descriptor opened when the rank
// arrived and compared with its start time: never a number that the kernel may
// give to somebody else. Ranks in this process cannot end without us and are not
// watched. A rank that waits looks for itself, too: exits.go.
type deaths struct {
	h     *Host
	event *mem.Event

	mu    sync.Mutex
	procs []*mem.Process // by rank; nil: not watched
}

// watchDeaths starts the goroutine. It sleeps in the kernel, on a thread of its
// own, until somebody ends.
func (h *Host) watchDeaths() error {
	e, err := mem.NewEvent()
	if err != nil {
		return err
	}
	h.deaths = &deaths{h: h, event: e, procs: make([]*mem.Process, h.cfg.Size)}
	h.exits = newExits(h)
	h.serving.Go(h.deaths.run)
	return nil
}

// watch begins to watch a rank that has arrived.
func (d *deaths) watch(rank int) error {
	pid := int(d.h.page.pid(rank).Load())
	if s := d.h.page.state(rank).Load(); pid == os.Getpid() || s >= left {
		return nil
	}
	p, err := mem.OpenProcess(pid, d.h.page.start(rank).Load())
	if errors.Is(err, mem.ErrNoProcess) {
		d.publish(rank)
		return nil
	}
	if err != nil {
		return fmt.Errorf("watching rank %d: %w", rank, err)
	}
	d.mu.Lock()
	d.procs[rank] = p
	d.mu.Unlock()
	d.event.Set()
	return nil
}

// Kill ends the process of another member. Its death is noticed as any other.
func (h *Host) Kill(rank int) error {
	h.deaths.mu.Lock()
	defer h.deaths.mu.Unlock()
	p := h.deaths.procs[rank]
	if p == nil {
		return fmt.Errorf("rank %d has ended, or has not arrived: %w", rank, syscall.ESRCH)
	}
	return p.Kill()
}

// publish says that a rank's process has ended.
func (d *deaths) publish(rank int) {
	d.h.change(rank, dead)
	d.h.leaveOut(rank)
	d.h.ringRank(d.h.cfg.Rank)
	if wake := d.h.onDeath.Load(); wake != nil {
		(*wake)()
	}
	d.h.sweep()
}

// run ends with the Host's context, after the event was set.
func (d *deaths) run() {
	defer func() {
		for _, p := range d.procs {
			if p != nil {
				p.Close()
			}
		}
		d.event.Close()
	}()
	for {
		d.mu.Lock()
		procs := slices.Clone(d.procs)
		d.mu.Unlock()
		ended, err := mem.WaitExit(d.event, procs)
		if d.h.ctx.Err() != nil {
			return
		}
		if err != nil {
			// Blind to deaths we could hang on one: better to be dead ourselves.
			d.h.Abort(rdma.HasFailed(d.h.cfg.Rank, fmt.Sprintf("it cannot watch the other ranks: %v", err)))
			return
		}
		for _, rank := range ended {
			d.mu.Lock()
			d.procs[rank].Close()
			d.procs[rank] = nil
			d.mu.Unlock()
			d.publish(rank)
		}
	}
}

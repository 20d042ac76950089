package rendezvous

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/internal/mem"
)

// Where ranks that died are replaced, all meet again as a job of their own: those that are
// left, and a new process for each that died. The page of the old job says when. A new
// process asks a rank of it, which notes the process and the number of the next try:
//
//	back[r] = pid, start time, try
//
// A rank that is left looks before each sync that counts clocks from 1. If all that died
// are back for the next try, it says before which sync all meet:
//
//	w = again; all that died are back for try(w)+1: CAS(again, w, try(w)+1 : clock+ahead+1)
//
// where no rank begins a sync later than clock+ahead as long as this one has not scattered
// at clock. So each finds the word in time, and finds the same, since only a rank for which
// that try is over begins the next. A rank that dies before the swap has done nothing; after
// it, the others find the word.
//
// A rank of the program may make fewer syncs than another, and not come. So those that have
// come decide, once for all:
//
//	here[me] = try; wait until all that are left are here, or one will not come
//	CAS(again, pending, all are here: go; else: skip)
//
// Then none is in another call: after go all of them meet, and then say to each other whether
// that has come about. If not, the old job goes on, and new processes ask again.
//
// Any rank that is asked writes back, for a process that is alone with the rank's socket. One
// that is stopped there, and goes on when there is another process, leaves a process that has
// ended, or is none: the try fails, and the next is asked for.

// again is number of the try<<againBits | clock<<2 | decision.
const (
	againBits = 50
	clockMask = 1<<(againBits-2) - 1

	deciding = 0
	decided  = 2 // to skip; with the lowest bit, to go
)

// again is changed by compare-and-swap, by any rank that is left.
func (p page) again() *mem.Word { return mem.WordAt(p, offAgain) }

// back is word i of what is noted of a process that is to be rank: the try, stored last, its
// pid and its start time.
func (p page) back(rank, i int) *mem.Word { return p.member(rank, offBack+8*i) }

// here is the try to meet at which the rank has come last. Written by the rank. Dies with it set: it
// is not among those that are left.
func (p page) here(rank int) *mem.Word { return p.member(rank, offHere) }

// tried is the id of the job that meets at that try.
func tried(id string, try uint64) string {
	if try == 0 {
		return id
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%s %d", id, try))
	return hex.EncodeToString(sum[:16])
}

// replacing is what this rank knows of processes that are to take part again.
type replacing struct {
	on      atomic.Bool
	refused atomic.Pointer[error] // why none can; nil: it can

	mu   sync.Mutex
	over chan struct{} // closed when the next try is over
}

// Replace lets new processes take the place of ranks that die, from now on.
func (h *Host) Replace() {
	r := &h.replacing
	r.mu.Lock()
	defer r.mu.Unlock()
	r.over = make(chan struct{})
	r.on.Store(true)
}

// Refuse has no process do so any more.
func (h *Host) Refuse(why error) { h.replacing.refused.CompareAndSwap(nil, &why) }

// MeetAt is asked before a sync at clock, by a rank for which try before was the last: the
// number of the try at which all meet before this sync; 0: they do not. ahead is by how much
// a sync of another rank may be ahead of this rank's last one.
func (h *Host) MeetAt(clock, ahead, before uint64) uint64 {
	if !h.guard.Enter() {
		return 0
	}
	defer h.guard.Exit()
	for {
		w := h.page.again().Load()
		try, at := w>>againBits, w>>2&clockMask
		switch {
		case try > before && at == clock:
			return try
		case try > before || !h.allBack(try+1):
			return 0
		}
		h.page.again().CompareAndSwap(w, (try+1)<<againBits|(clock+ahead+1)&clockMask<<2)
	}
}

// allBack tells whether there is a process for each rank that died.
func (h *Host) allBack(try uint64) bool {
	view := h.latest()
	for _, rank := range h.members {
		if !view.Has(rank) && h.page.back(rank, 0).Load() != try {
			return false
		}
	}
	return len(view.Ranks) < len(h.members)
}

// Come says that this rank is at the try to meet.
func (h *Host) Come(try uint64) {
	if h.guard.Enter() {
		defer h.guard.Exit()
		h.page.here(h.cfg.Rank).Store(try) // the last one decides, and rings
	}
}

// Meets is asked by a rank that is there: whether all that are left meet, once that is decided.
// absent tells whether one that has not come will not: it is in another call, or is gone.
func (h *Host) Meets(try uint64, absent func(rank int) bool) (meet, there bool) {
	if !h.guard.Enter() {
		return false, true
	}
	defer h.guard.Exit()
	word, all := h.page.again(), true
	for _, rank := range h.latest().Ranks {
		if h.page.here(rank).Load() == try {
			continue
		}
		if !absent(rank) {
			w := word.Load()
			return w&1 != 0, w&decided != deciding
		}
		all = false
	}
	w := word.Load()
	if w&decided == deciding {
		next := w | decided
		if all {
			next |= 1
		}
		if word.CompareAndSwap(w, next) {
			for _, rank := range h.members {
				ring(h.page.bell(rank, 0)) // of its own calls
			}
		}
		w = word.Load()
	}
	return w&1 != 0, true
}

// Met says that the try is over for this rank: processes that wait for it ask again.
func (h *Host) Met() {
	r := &h.replacing
	r.mu.Lock()
	defer r.mu.Unlock()
	close(r.over)
	r.over = make(chan struct{})
}

// AwaitLoss returns when one of the ranks in the view of that generation, or one of the
// processes that are to be the others, has ended; or ctx has.
func (h *Host) AwaitLoss(ctx context.Context, generation uint64) error {
	if !h.guard.Enter() {
		return rdma.ErrClosed
	}
	defer h.guard.Exit()
	event, err := mem.NewEvent()
	if err != nil {
		return err
	}
	defer event.Close()
	var procs []*mem.Process
	defer func() {
		for _, p := range procs {
			p.Close()
		}
	}()
	view := h.latest()
	for _, rank := range h.members {
		if view.Has(rank) {
			continue
		}
		p, err := mem.OpenProcess(int(h.page.back(rank, 1).Load()), h.page.back(rank, 2).Load())
		if errors.Is(err, mem.ErrNoProcess) {
			return nil
		}
		if err != nil {
			return err
		}
		procs = append(procs, p)
	}
	var ended atomic.Bool
	var watching sync.WaitGroup
	watching.Go(func() {
		_, _ = mem.WaitExit(event, procs)
		ended.Store(true)
		h.RingOwn()
	})
	err = h.Wait(ctx, 0, patient, func() bool { return ended.Load() || h.latest().Generation != generation })
	event.Set()
	watching.Wait()
	return err
}

// answerBack notes a process that is to be rank, and tells it the number of the try. Then the
// connection lasts until that is over.
func (h *Host) answerBack(c *conn, rank int) {
	h.replacing.mu.Lock()
	over := h.replacing.over
	h.replacing.mu.Unlock()
	try, err := h.letIn(rank, c.pid)
	if err != nil {
		_ = c.send(encode(refusal(err)))
		return
	}
	if c.send(encode(&reply{Try: try})) != nil || try == 0 {
		return
	}
	gone := make(chan struct{})
	h.serving.Go(func() { // ends when c is closed
		defer close(gone)
		_, _ = c.Read(make([]byte, 1))
	})
	select {
	case <-gone:
	case <-over:
	case <-h.ctx.Done():
	}
}

// letIn is the number of the try for which a process is to be rank; 0: not as long as the
// others have not gone on without the rank.
func (h *Host) letIn(rank, pid int) (uint64, error) {
	if why := h.replacing.refused.Load(); why != nil {
		return 0, *why
	}
	if !h.guard.Enter() {
		return 0, nil
	}
	defer h.guard.Exit()
	if !h.replacing.on.Load() || h.page.state(rank).Load() != dead || h.latest().Has(rank) {
		return 0, nil
	}
	start, err := mem.StartTime(pid)
	if err != nil {
		return 0, nil // it has ended
	}
	return h.page.letIn(rank, pid, start), nil
}

// letIn notes a process that is to be rank, for the next try.
func (p page) letIn(rank, pid int, start uint64) uint64 {
	try := p.again().Load()>>againBits + 1
	p.back(rank, 1).Store(uint64(pid))
	p.back(rank, 2).Store(start)
	p.back(rank, 0).Store(try)
	return try
}

// Return asks the ranks of the job to have this process take the place of c.Rank, which has
// died: with the Try of the result it meets them, before the context ends that comes with it. most is
// how many tries there have been, at most. It fails with rdma.ErrLeft where the job has ended.
func (c Config) Return(ctx context.Context, most uint64) (Config, context.Context, error) {
	for wait := backoff(0); ; wait = wait.next() {
		heard := false
		for c.Try = 0; c.Try <= most; c.Try++ { // ascending: the next job is there before the last one ends
			job, err := c.job()
			if err != nil {
				return c, nil, err
			}
			for _, rank := range c.members() {
				if rank == c.Rank {
					continue
				}
				conn, err := dial(ctx, job, rank)
				if err != nil {
					continue
				}
				heard = true
				try, err := c.askBack(ctx, conn, rank)
				if errors.As(err, new(*refusedError)) {
					conn.Close()
					return c, nil, err
				}
				if try > 0 {
					c.Try = try
					return c, lasting(ctx, conn), nil
				}
				conn.Close()
			}
		}
		if !heard {
			return c, nil, say.Errorf(rdma.ErrLeft, "the job had ended before rank %d could join it again", c.Rank).
				At("this process was to take the place of one that died; no other rank is left").
				Try("Read what the other ranks printed: the result, if they ended well, is theirs.")
		}
		if err := wait.sleep(ctx); err != nil {
			return c, nil, say.Errorf(err, "rank %d could not join again", c.Rank).At("the other ranks have not gone on without the process that it was before")
		}
	}
}

// askBack is the try that a rank names; 0: none.
func (c *Config) askBack(ctx context.Context, with *conn, rank int) (uint64, error) {
	stop := with.interruptible(ctx)
	defer stop()
	m, fds, err := c.ask(with, wantBack, "", rank)
	closeAll(fds)
	return m.Try, err
}

// lasting is ctx as long as the other end of a connection does not close it.
func lasting(ctx context.Context, c *conn) context.Context {
	inner, cancel := context.WithCancel(ctx)
	stop := c.interruptible(ctx)
	go func() {
		_, _ = c.Read(make([]byte, 1))
		cancel()
		stop()
		c.Close()
	}()
	return inner
}

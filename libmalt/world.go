package libmalt

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"malt/internal/say"
	"malt/libmalt/internal/core"
	"malt/rdma"
	"malt/rdma/auto"
)

// World is this rank's membership in a job. Its calls that wait serve one
// goroutine at a time; a second one gets ErrBusy.
type World struct {
	job     *core.Job
	timeout time.Duration
	tape    *tape          // is job.Tape, or nil
	unnamed map[string]int // objects made without a name, by kind
	again   *again         // nil: nobody takes the place of a rank that died
}

// NewWorld joins the ranks of t. It waits until all of them have.
func NewWorld(ctx context.Context, t rdma.Transport, c Config) (*World, error) {
	w := &World{timeout: c.Timeout, unnamed: map[string]int{}}
	if w.timeout <= 0 {
		w.timeout = DefaultTimeout
	}
	err := func() (err error) {
		if w.job, err = core.NewJob(ctx, t); err != nil {
			return unjoined(t, err)
		}
		w.job.Room = room
		if c.Record+c.Replay != "" && t.Size() > 1 {
			if len(t.Near()) < t.Size() {
				return say.Errorf(ErrUnsupported, "MALT_RECORD and MALT_REPLAY are for ranks that share memory").At("the ranks of this job are on several machines, or use transport=tcp").Try("Leave them out, or run all ranks on one machine.")
			}
			if w.tape, err = newTape(t.Rank(), t.Size(), c.Record, c.Replay); err != nil {
				return err
			}
			w.job.Tape = w.tape
		}
		if c.Trace != nil {
			w.job.Marks.Trace = c.Trace
		}
		if c.Continue && len(t.Near()) < t.Size() {
			w.job.Linger = lingering + 2*cmp.Or(c.Unreachable, auto.WhereSurvived)
			if err := w.job.PublishSettling(ctx); err != nil {
				return err
			}
		}
		hosts := [][]byte{core.TellHost(t)}
		if t.Size() > 1 { // nobody leaves before everybody has joined
			if hosts, err = w.collect(ctx, core.OpOf("malt.init", c.onDeath(), nil), hosts[0]); err != nil {
				return err
			}
		}
		if w.job.Hosts, err = core.HostsOf(hosts, t.Near()); err == nil && c.Continue {
			err = w.job.Survive(ctx, c.MinRanks)
		}
		w.job.Seen()
		if err == nil && c.Replace && c.Size > 1 {
			err = w.replaces(ctx, c)
		}
		return err
	}()
	switch {
	case err != nil && ctx.Err() != nil:
		return nil, late(ctx, err)
	case err != nil:
		return nil, err
	}
	return w, nil
}

// unjoined names the ranks that have gone while others were joining: one that could not join, and those that
// have noticed.
func unjoined(t rdma.Transport, err error) error {
	var gone []int
	for r := range t.Size() {
		if errors.Is(t.State(r), rdma.ErrLeft) {
			gone = append(gone, r)
		}
	}
	if !errors.Is(err, rdma.ErrLeft) || len(gone) == 0 {
		return err
	}
	return say.Errorf(rdma.ErrLeft, "waited for %s, which did not join the job", say.Ranks(gone)).In("malt.init").
		At("a rank that cannot join says why in an error of its own").Try("Look for that error in the output of the job.")
}

// lingering is more than a death between hosts, or a host that falls silent, takes to be settled,
// without the time after which hosts are silent.
const lingering = time.Second

// Rank is this process's number, 0 … Size()-1.
func (w *World) Rank() int { return w.job.Rank }

// Size is the number of ranks.
func (w *World) Size() int { return w.job.Size }

// LocalRank is this rank's place among those of its machine.
func (w *World) LocalRank() int { return slices.Index(w.job.T.Near(), w.job.Rank) }

// Alive is the ranks that take part, ascending. They change in calls alone, and with
// them the Generation.
func (w *World) Alive() []int { return slices.Clone(w.job.View().Ranks) }

// OnDeath has f called for each rank that the job goes on without, once, by the call that
// notices. It is set before any call that may.
func (w *World) OnDeath(f func(v rdma.View, dead *rdma.PeerError)) {
	w.job.OnDeath = func(v rdma.View, dead *rdma.PeerError) {
		v.Generation += w.past()
		f(v, dead)
	}
}

// OnTrouble has f called for each Trouble, once, by the call that finds it. It is set before any
// call that may.
func (w *World) OnTrouble(f func(t Trouble)) { w.job.OnTrouble = f }

// Confirm returns when this rank is known to take part still: when it was called the others
// had not gone on without it. Among the ranks of one machine each that can ask takes part.
func (w *World) Confirm(ctx context.Context) error { return w.job.Confirm(ctx) }

// Expel kills the process of a rank that hangs.
func (w *World) Expel(rank int) error {
	if rank == w.job.Rank {
		return say.Errorf(ErrInvalid, "rank=%d is this rank itself", rank).In("malt.expel").Try("Raise an exception instead, or call sys.exit(1).")
	}
	if err := w.checkRank("malt.expel", "rank", rank); err != nil {
		return err
	}
	return w.job.Expel(rank)
}

// Generation is the membership number: it changes when the set of ranks does.
func (w *World) Generation() uint64 { return w.past() + w.job.View().Generation }

// Timeout is the job's own, for calls that name none.
func (w *World) Timeout() time.Duration { return w.timeout }

// Traffic counts what went to and came from peer, over all objects.
func (w *World) Traffic(peer int) rdma.Traffic { return w.job.T.Traffic(peer) }

// At tells the other ranks where in its program this rank is. Text that is too
// long is cut.
func (w *World) At(place string) { w.job.Marks.At(place) }

// Waited is what the collective calls of this rank have waited, for which ranks.
func (w *World) Waited() (Stats, error) { return w.job.Waited() }

// Mark shows a text, such as "epoch 3", to those who watch this rank.
func (w *World) Mark(text string) { w.job.Marks.Trace.Mark(text) }

// Log shows them a value, such as the loss.
func (w *World) Log(name string, value float64) { w.job.Marks.Trace.Log(name, value) }

// Abort publishes this rank's own death: every wait of the others for it fails
// with why, which is rdma.HasFailed, or the death that this rank ends because of.
// A death that one of its calls has returned comes before what it says of itself.
func (w *World) Abort(why *rdma.PeerError) { w.job.Abort(why) }

// Close leaves the job in good order, and the others no longer wait for this rank;
// after a failure of one of its calls it leaves as dead, as by Abort.
// Memory of its objects stays valid until Unmap. ErrBusy, and nothing is closed,
// while another goroutine is in a call, or an object in a fold: it is reading
// memory that Close gives back.
func (w *World) Close() error {
	ctx, stop := context.WithTimeout(context.Background(), w.timeout)
	defer stop()
	return w.Leave(ctx)
}

// Leave is Close. It waits, as long as ctx does, for ranks that need this one to pass on
// changes.
func (w *World) Leave(ctx context.Context) error {
	return cmp.Or(w.job.Close(ctx), w.tape.Close())
}

// Unmap gives back the memory of an object that has been closed. first is its
// first byte. It works after Close, too.
func (w *World) Unmap(first *byte) error { return w.job.Unmap(first) }

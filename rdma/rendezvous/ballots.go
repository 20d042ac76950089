package rendezvous

import (
	"errors"

	"malt/rdma"
	"malt/rdma/internal/mem"
	"malt/rdma/vote"
)

// Ballots is the page as the hosts' votes need it: what this host has promised, accepted and
// learned, and which of its ranks live. One goroutine at a time uses it, but for Enter, LeaveOut
// and Out.
type Ballots struct {
	votes
	h *Host
}

// Ballots is for a job on several hosts (Config.Hosts).
func (h *Host) Ballots() *Ballots {
	b := &Ballots{votes{page: h.page, rank: h.cfg.Rank, job: h.votesOf()}, h}
	b.news = func() {
		for _, r := range h.members {
			h.ringRank(r)
		}
	}
	return b
}

// votesOf are the hosts of the job.
func (h *Host) votesOf() vote.Job {
	job := vote.Job{Of: h.cfg.Hosts}
	for _, host := range h.cfg.Hosts {
		job.Hosts = max(job.Hosts, host+1)
	}
	return job
}

// OnDeath has wake called when this rank finds another one of this machine dead; it must
// not block.
func (b *Ballots) OnDeath(wake func()) { b.h.onDeath.Store(&wake) }

// Enter keeps the page mapped until Exit; false once the Host is closed. All methods that use
// the page, but for LeaveOut and Out, are for those that have entered.
func (b *Ballots) Enter() bool { return b.h.guard.Enter() }
func (b *Ballots) Exit()       { b.h.guard.Exit() }

// Living are the ranks of this machine that are not dead. Those that have left, or have
// said that they end, stay in the view, as on one host.
func (b *Ballots) Living() vote.Set {
	s := vote.NewSet(len(b.job.Of))
	for _, rank := range b.h.members {
		if b.page.state(rank).Load() != dead {
			s.Add(rank)
		}
	}
	return s
}

// out is 1 once a rank of this host has found that the others have gone on without the host, or
// that this cannot be known any more. It says so here before it tells its caller, so that the
// others do not take the end of that rank for a death. Final.
func (p page) out() *mem.Word { return mem.WordAt(p, offOut) }

// LeaveOut notes it, and Out tells whether a rank has. Any goroutine may call them at any time.
func (b *Ballots) LeaveOut() {
	if b.Enter() {
		b.page.out().Store(1)
		b.Exit()
	}
}

func (b *Ballots) Out() (out bool) {
	if b.Enter() {
		out = b.page.out().Load() != 0
		b.Exit()
	}
	return out
}

// undecided tells whether the hosts have yet to decide on a view without rank, which is dead:
// the job goes on, and waits for it do until then.
func (h *Host) undecided(rank int) bool {
	return h.cfg.Hosts != nil && h.least.Load() > 0 && h.latest().Has(rank)
}

// elsewhere is State of a rank that is no member. Its own last word, and that it has
// left, are told at once; what others find out of it once the hosts have decided. Then it
// is out, whatever is known of it. The caller has entered the guard.
func (h *Host) elsewhere(rank int) error {
	err := h.cfg.Elsewhere(rank)
	switch {
	case h.cfg.Hosts == nil || h.least.Load() == 0 || err == rdma.ErrLeft || err == rdma.ErrClosed || err != nil && h.cfg.Said(rank):
		return err
	case h.latest().Has(rank):
		return nil
	case err == nil:
		return &rdma.PeerError{Rank: rank, Kind: rdma.Unreachable, Err: errors.New("the others have gone on without it: it has ended, or its host cannot be reached")}
	}
	return err
}

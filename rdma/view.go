package rdma

import (
	"context"
	"slices"
)

// View is the set of ranks that take part, and its number, which grows when the set
// changes. Ranks keep their numbers: what each has mapped stays where it is, and a smaller
// view divides the same memory among fewer ranks.
type View struct {
	Generation uint64 // from 1; two views of one job that have the same are the same
	Ranks      []int  // ascending; nobody changes them
}

// Everyone is the view with which a job of so many ranks begins.
func Everyone(size int) View {
	v := View{Generation: 1}
	for r := range size {
		v.Ranks = append(v.Ranks, r)
	}
	return v
}

// Has tells whether rank takes part.
func (v View) Has(rank int) bool {
	_, in := slices.BinarySearch(v.Ranks, rank)
	return in
}

// Others are the ranks but rank.
func (v View) Others(rank int) []int {
	return slices.DeleteFunc(slices.Clone(v.Ranks), func(r int) bool { return r == rank })
}

// Part is which of the equal parts of something rank has, and how many there are.
func (v View) Part(rank int) (part, of int) {
	part, _ = slices.BinarySearch(v.Ranks, rank)
	return part, len(v.Ranks)
}

// Viewed is a Transport on which a job can go on when a rank dies.
type Viewed interface {
	Transport
	// Survive has the job go on, from now on, when a rank dies, as long as least are
	// left. All ranks say the same.
	Survive(least int)
	// View is who takes part: all, until Survive. Then a rank of which State has told
	// that it is dead is not among them, unless too few are left, or it has said so itself
	// (Abort): such a death ends the job.
	View() View
	// Out is nil while this rank may take part, and rdma.ErrExpelled, with the reason, once
	// the others have gone on without it. On one machine a rank that can ask takes part.
	Out() error
	// Stuck is nil, or says what a decision on who takes part lacks: an rdma.ErrExpelled where it is
	// votes, of hosts that are not heard; a context.DeadlineExceeded where all ranks of a host are
	// stopped. Waits go on meanwhile, unless it is final: too many hosts have ended.
	Stuck() (why error, final bool)
	// Confirm asks, until ctx ends, whether the others had gone on without this rank when it
	// was called. The ranks of one machine need not be asked. Wait looks again at an answer.
	Confirm(ctx context.Context) Answer
	// Expel ends the process of another rank of this machine, as a hang has to be.
	Expel(rank int) error
}

// Answer tells whether it is known that this rank takes part (Out tells that it does not), and until
// then the ranks whose hosts have not answered. Nobody changes them.
type Answer func() (known bool, late []int)

// Known is the Answer where nobody need be asked.
func Known() (known bool, late []int) { return true, nil }

// Replacing is a Viewed transport on which new processes can take the place of ranks that
// died: all meet again then, on another one.
type Replacing interface {
	Viewed
	// Replace lets new processes ask for that, Refuse has them told why they cannot.
	Replace()
	Refuse(why error)
	// MeetAt is asked before a sync at clock, by a rank for which try before was the last: the
	// number of the try at which all meet before this sync; 0: they do not. ahead is by how
	// much a sync of another rank may be ahead of this rank's last one.
	MeetAt(clock, ahead, before uint64) (try uint64)
	// Come says that this rank is there. Meets tells then whether all that are left meet, once
	// that is decided; absent, whether one that has not come will not.
	Come(try uint64)
	Meets(try uint64, absent func(rank int) bool) (meet, there bool)
	// AwaitLoss returns when one of those that are to meet has ended, in the view of that
	// generation. Met says that the try is over.
	AwaitLoss(ctx context.Context, generation uint64) error
	Met()
}

// ViewedOutbox is an Outbox of a Viewed transport.
type ViewedOutbox interface {
	Outbox
	// Serve makes the readers in to, in the view of that generation, those of a queue:
	// nothing more is for the others, and Begin waits only until they have released what
	// was. It returns how many of them the next Commit can be for: a reader has begun to
	// read in the same view (ViewedInbox), and has not passed that update. The caller asks
	// before the first Commit, in each view, and again as long as it is not all.
	Serve(generation uint64, to []int) int
	// Served tells whether reader is one that the next Commit can be for.
	Served(reader int) bool
	// Forget does without reader, which is dead: what it was reading is free.
	Forget(reader int)
}

// ViewedInbox is an Inbox of a Viewed transport. The reader of a queue whose sender calls
// Serve counts the updates of that sender, whether it reads them or not: the n-th gather is
// for the n-th update.
type ViewedInbox interface {
	Inbox
	// Begin says that this rank is a receiver in the view of that generation: Next has
	// every update now, though what is not for this rank without Data.
	Begin(generation uint64)
	// Over tells, where this rank is none, whether all that was sent to it has been had.
	// If not, the next update is to be waited for: the sender may be committing it. If
	// so, Next is not called until Begin is again.
	Over(generation uint64) bool
	// Pass counts an update that is not waited for; with there only one that is there.
	Pass(there bool)
	// Level counts all updates up to seq, as far as there are any, and no others.
	Level(seq uint64)
}

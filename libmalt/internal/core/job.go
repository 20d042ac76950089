package core

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"malt/internal/say"
	"malt/libmalt/progress"
	"malt/libmalt/rule"
	"malt/rdma"
)

// Job is this rank's part in a job: what its objects and its collective calls share. The
// calls serve one goroutine at a time.
type Job struct {
	T     rdma.Transport
	Rank  int
	Size  int // of the job when it began
	view  atomic.Pointer[rdma.View]
	views rdma.Viewed  // T, once the job is to go on when ranks die; nil: it is not
	lacks rdma.Lacking // T, where it can be without RDMA; nil: it cannot
	// OnDeath is called for each rank that the job goes on without, from the call that
	// notices.
	OnDeath func(v rdma.View, dead *rdma.PeerError)
	// Tape records this run, or has another one; nil: neither.
	Tape Tape
	// OnTrouble is called from the call that finds one.
	OnTrouble func(Trouble)
	Hosts     Hosts // set by the first collective call
	// Room is memory in the heap for so many bytes from rank, or ErrNoMemory.
	Room     func(rank int, bytes uint64) ([]byte, error)
	Marks    *Marks
	Failures *Failures
	Progress *progress.Loop
	Gate     Gate // of the collective calls
	counts   Stats

	// The collective stream: this rank's queue to all others, theirs to it.
	out     rdma.Outbox
	in      []stream      // by rank; own entry unused
	calls   atomic.Uint64 // collectives completed or given up
	small   int           // data up to this length travels with its header
	scratch [2][]byte     // for results that must not be half written; see Scratch
	spare   int           // which of them the next result goes to
	touched []*Member     // objects that the end of a collective call levels
	met     int           // how many ranks were in the last collective call

	// Linger is for how long a rank that is done waits for the others to be, before it leaves.
	Linger time.Duration

	settling    *settling   // nil: on one host, and where a death ends the job
	settlingOut rdma.Outbox // its queue to the others

	mu      sync.Mutex
	objects []*Member // open, in the order of creation and of ids; appended to, else replaced
	kept    []*Member // closed since the last collective call, of those that survivors settle about; the same
	untold  []*Member // those with news for the others: see header.go
	memory  map[*byte]*memory
	closed  bool
	servers []Server // of objects that are closed
	// Senders of a queue reuse slots that an away rank has not read. So while
	// this rank is away it must not use queues, and the other way round.
	queues int  // gathers and scatters in notify-ack under way
	away   bool // in a collective
}

// memory is one mapping handed to the caller.
type memory struct {
	bytes []byte
	owner *Member // nil once it is used no longer
	freed bool    // it goes with its owner, which has been closed
}

// NewJob connects this rank with the others. It waits until all of them have begun to.
func NewJob(ctx context.Context, t rdma.Transport) (*Job, error) {
	j := newJob(t.Rank(), t.Size())
	j.T, j.Progress = t, progress.New(t)
	j.lacks, _ = t.(rdma.Lacking)
	others := make([]int, 0, j.Size)
	for r := range j.Size {
		if r != j.Rank {
			others = append(others, r)
		}
	}
	spec := rdma.Spec{Bytes: ChunkBytes, Mode: rdma.Queue(chunkDepth), About: "collectives"}
	if len(others) > 0 { // before any wait, so that a long way is gone once for both
		var err error
		if j.out, err = t.Publish(ctx, "world", spec, others); err != nil {
			return nil, err
		}
	}
	words, err := t.Words(ctx, "world", MarkCount)
	if err != nil {
		return nil, err
	}
	j.Marks = NewMarks(t, words)
	j.Marks.beside = j.Progress
	if len(others) == 0 {
		return j, nil
	}
	inboxes, err := t.Subscribe(ctx, "world", spec, others)
	for _, in := range inboxes {
		j.in[in.From()].inbox = in
	}
	return j, err
}

func newJob(rank, size int) *Job {
	j := &Job{Rank: rank, Size: size, small: withHeader, met: size, in: make([]stream, size), memory: map[*byte]*memory{}}
	j.enter(rdma.Everyone(size))
	j.Failures = NewFailures(rank, &j.Gate)
	j.counts.Edges = make([]Edge, size)
	j.Gate.waiter.counts = &j.counts
	return j
}

// String names the job in messages.
func (j *Job) String() string { return "the job" }

// Abort publishes this rank's own death: every wait of the others for it fails
// with why, which is rdma.HasFailed, or the death that this rank ends because of.
// A death that one of its calls has returned comes before what it says of itself.
func (j *Job) Abort(why *rdma.PeerError) {
	if dead := j.Failures.Death(); dead != nil && why.Rank == j.Rank {
		why = dead
	}
	j.T.Abort(why.Heard(j.Rank, j.Rank, j.Size))
}

// Close leaves the job in good order, and the others no longer wait for this rank;
// after a failure (failing.go) it leaves as dead, as by Abort.
// Memory of its objects stays valid until Unmap. ErrBusy, and nothing is closed,
// while another goroutine is in a call, or an object in a fold: it is reading
// memory that Close gives back. ctx bounds how long it serves ranks that still need this one.
func (j *Job) Close(ctx context.Context) error {
	if err := j.Gate.Enter(j); err != nil {
		return err
	}
	defer j.Gate.Leave()
	objects := j.open()
	for i, m := range objects {
		if err := m.Gate.Enter(m); err != nil {
			for _, locked := range objects[:i] {
				locked.Free()
			}
			return err
		}
	}
	why := j.Failures.Reason()
	if s := j.settling; s != nil && why == nil && !j.closed {
		j.Marks.Set(MarkAway, Ended)
		j.linger()
	}
	j.mu.Lock()
	closed := j.closed
	j.closed, j.objects = true, nil
	j.mu.Unlock()
	if closed {
		return nil
	}
	if s := j.settling; why == nil && s != nil && s.unfinished() {
		why = rdma.HasFailed(j.Rank, "it has left while the others were waiting for what it had of a dead rank")
	}
	if why != nil {
		j.Abort(why) // before anything that others could take for an end in good order
	}
	j.Marks.Set(MarkAway, Ended)
	var err error
	for _, m := range objects {
		m.Open = false
		err = cmp.Or(err, m.end())
		m.Gate.Leave()
	}
	err = cmp.Or(err, j.release(), j.served(ctx, why == nil))
	for _, b := range j.scratch {
		if b != nil {
			err = cmp.Or(err, j.T.Unmap(b))
		}
	}
	return cmp.Or(err, j.T.Close())
}

// linger waits until the others are done, too, or are gone, where hosts decide who takes part:
// without this one they may be too few to decide on a death in their last call, or lack what it
// has of that. It does not wait for longer than that takes, nor do they for this rank.
func (j *Job) linger() {
	s := j.settling
	s.mu.Lock()
	s.leaves = true
	s.mu.Unlock()
	ctx, stop := context.WithTimeout(context.Background(), j.Linger)
	defer stop()
	_ = j.T.Wait(ctx, func() bool {
		if j.Help(nil) != nil {
			return true
		}
		for r := range j.Size {
			if away, _ := j.Marks.Get(r, MarkAway); r != j.Rank && away != Ended && j.T.State(r) == nil {
				return false
			}
		}
		return true
	})
}

// Waited is what the calls of the job have waited, but those that are Booked.
func (j *Job) Waited() (Stats, error) {
	if err := j.Gate.Enter(j); err != nil {
		return Stats{}, err
	}
	defer j.Gate.Leave()
	return j.counts.Copy(), nil
}

// Run is Gate.Run for the calls of the job.
func (j *Job) Run(ctx context.Context, op string, begin func() (Stepper, error)) error {
	return j.Gate.Run(ctx, j.Marks, j.Failures, j, false, func() (Stepper, error) {
		j.mu.Lock()
		closed := j.closed
		j.mu.Unlock()
		if closed {
			return nil, say.Errorf(ErrClosed, "%s: this process has left the job", CallOf(op)).In(CallOf(op))
		}
		return begin()
	})
}

// Calls is the number of the last collective call, completed or given up.
func (j *Job) Calls() uint64 { return j.calls.Load() }

// Scratch is memory for a result of n bytes, kept for the next call. Where survivors settle
// there are two in turn: each rank keeps the result of its last call until the next one has
// completed.
func (j *Job) Scratch(n int) ([]byte, error) {
	scratch := &j.scratch[j.spare]
	if n > len(*scratch) {
		b, err := j.T.Map(n)
		if err != nil {
			return nil, err
		}
		if *scratch != nil {
			if err := j.T.Unmap(*scratch); err != nil {
				return nil, err
			}
		}
		*scratch = b
	}
	return (*scratch)[:n], nil
}

// Alloc gives m memory: b, or a mapping of its own of at least one byte, since an empty
// array has an address, too.
func (j *Job) Alloc(m *Member, b []byte, bytes int) (err error) {
	if b == nil {
		if b, err = j.T.Map(max(bytes, 1)); err != nil {
			return err
		}
	}
	m.Data, m.Base = b[:bytes:bytes], &b[0]
	j.mu.Lock()
	defer j.mu.Unlock()
	j.memory[m.Base] = &memory{bytes: b, owner: m}
	return nil
}

// Mapping is the memory of m. With Cede j forgets it: it is that of another job's object.
func (j *Job) Mapping(m *Member) []byte {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.memory[m.Base].bytes
}

func (j *Job) Cede(m *Member) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.memory, m.Base)
}

// Disown marks the memory of m as no longer in use by MALT.
func (j *Job) Disown(m *Member) error {
	j.mu.Lock()
	x := j.memory[m.Base]
	freed := x != nil && x.freed
	if x != nil {
		x.owner, x.freed = nil, false
	}
	j.mu.Unlock()
	if freed {
		return j.Unmap(m.Base)
	}
	return nil
}

// Unmap gives back the memory of an object that has been closed: at once, or with the rest of
// what is kept of it. first is its first byte. It works after Close, too.
func (j *Job) Unmap(first *byte) error {
	j.mu.Lock()
	x := j.memory[first]
	if x != nil && x.freed {
		x = nil
	}
	if x != nil && x.owner == nil {
		delete(j.memory, first)
	}
	later := x != nil && x.owner != nil && x.owner.gone.Load()
	if later {
		x.freed = true
	}
	j.mu.Unlock()
	switch {
	case later:
		return nil
	case x == nil:
		return say.Errorf(ErrInvalid, "%p is not the memory of a vector or segment, or was unmapped before", first)
	case x.owner != nil:
		return say.Errorf(ErrBusy, "the memory of %s cannot be unmapped while it is open", x.owner).Try("Close it first.")
	}
	return j.T.Unmap(x.bytes)
}

// open lists the objects of this rank.
func (j *Job) open() []*Member {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.objects
}

// Enlist makes m known to levelling and Close.
func (j *Job) Enlist(m *Member) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.objects = append(j.objects, m) // behind what those have who read it now
}

// delist makes m, which is closed, unknown to them. Kept, others may still ask for what it has.
func (j *Job) delist(m *Member, kept bool) {
	m.gone.Store(true)
	m.Changed()
	j.mu.Lock()
	defer j.mu.Unlock()
	i := slices.Index(j.objects, m)
	j.objects = append(j.objects[:i:i], j.objects[i+1:]...)
	if kept {
		j.kept = append(j.kept, m)
	}
}

// asked are the objects that others may ask about: those that are open or kept.
func (j *Job) asked() []*Member {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append(j.objects[:len(j.objects):len(j.objects)], j.kept...)
}

// release ends the objects that are kept.
func (j *Job) release() (err error) {
	j.mu.Lock()
	kept := j.kept
	j.kept = nil
	j.mu.Unlock()
	for _, m := range kept {
		err = cmp.Or(err, m.end())
	}
	return err
}

// calling is the collective call that rank is in, and the object that it is about, 0
// for none.
func (j *Job) calling(rank int) (id uint32, n uint64, there bool) {
	activity, id, n, err := j.Marks.Doing(rank)
	return id, n, err == nil && activity == InCollective
}

// The advice for the most frequent reasons why a rank does not come.
const (
	allMustCall = "All ranks must make this call. Is it under `if rank == 0`?"
	allMustSync = "Each rank must sync the same vectors in the same order. Does one rank skip a sync, or is it only slow?"
)

// waitFor is the wait of a call for ranks. do and more are a guess about the program; the
// state of a connection gives better advice where it is known.
func (j *Job) waitFor(call string, ranks []int, do, more string) Wait {
	whom, known := j.Marks.Describe(ranks, j.NameOf)
	if known.do != "" {
		do, more = known.do, known.topic
	}
	return Wait{Call: call, Whom: whom, Do: do, More: more}
}

// NameOf is what the object of that number is called; "" if this rank has none.
func (j *Job) NameOf(id uint32) (name string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, m := range j.objects {
		if m.ID&IDMask == id {
			name = m.String()
		}
	}
	return name
}

// UseQueue lets a step of a gather or scatter in notify-ack use its queues,
// until LeaveQueue.
func (j *Job) UseQueue(m fmt.Stringer) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.away {
		return say.Errorf(ErrBusy, "%s cannot be used while this rank is in a collective call", m).
			At("another thread made that call, and notify-ack does not allow both").Try("Wait until it is over.")
	}
	j.queues++
	return nil
}

func (j *Job) LeaveQueue() {
	j.mu.Lock()
	j.queues--
	j.mu.Unlock()
}

// startAway begins a collective, stopAway ends it.
func (j *Job) startAway(op string, n uint64, about *Member) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.queues > 0 {
		return say.Errorf(ErrBusy, "%s cannot be made during a gather or scatter in notify-ack", op).In(op).
			At("another thread is in that call, or this thread is in a fold").Try("Wait for it first.")
	}
	j.away = true
	id := uint32(0)
	if about != nil {
		id = about.ID
	}
	j.Marks.Note(InCollective, id, n)
	j.Marks.Set(MarkAway, n)
	return nil
}

func (j *Job) stopAway() {
	j.mu.Lock()
	j.away = false
	j.mu.Unlock()
}

// IsAway tells whether rank is inside a collective that this rank has not
// completed, or has left. PROTOCOLS, join rule.
func (j *Job) IsAway(rank int) (bool, error) {
	call, err := j.Marks.Get(rank, MarkAway)
	return j.misses(call), err
}

// misses tells whether this rank has not completed the call that another one is in.
func (j *Job) misses(call uint64) bool { return call > j.calls.Load() }

// ended is the transport's word on a rank, or ErrLeft where that makes no more calls but still serves others: see
// serving.go. It has sent all before it says so. Where survivors settle they may need what it has of the last call.
func (j *Job) ended(rank int) error {
	state := j.T.State(rank)
	if state == nil && j.Progress.Runs() && !j.Settles() && j.Marks.Peek(rank, MarkAway) == Ended {
		return rdma.ErrLeft
	}
	return state
}

// Standing is what is known of a rank that a call lacks, and the death of one that is dead.
// gone is a box's word on it: a rank that has closed the object, or ended, is away, unless
// it died. Whether it is dead to the job is the transport's to say.
//
// Of a rank that is lost this one goes over to a view without it: the user who asks after the
// call which ranks were in it, sees that.
func (j *Job) Standing(rank int, gone error) (rule.Standing, error) {
	_, standing, death := j.standing(rank, gone)
	if standing == rule.Lost {
		j.Adopt()
	}
	return standing, death
}

// standing is Standing for the goroutine beside the user's, which goes over to no view; and in which
// call the rank was last.
func (j *Job) standing(rank int, gone error) (call uint64, s rule.Standing, death error) {
	if gone == nil {
		call, gone = j.Marks.Get(rank, MarkAway)
	}
	dead := DeathIn(gone)
	if dead == nil && gone != nil {
		dead = DeathIn(j.T.State(rank))
	}
	switch {
	case dead != nil && LeftOut(j.T, rank):
		return call, rule.Lost, nil
	case dead != nil && j.Undecided(dead):
		return call, rule.Present, nil
	case dead != nil:
		return call, rule.Dead, dead
	case j.misses(call) || gone != nil:
		return call, rule.Away, nil
	}
	return call, rule.Present, nil
}

// Undecided tells whether the hosts have yet to decide that the job goes on without a rank
// that has been found dead. Calls wait for it until then.
func (j *Job) Undecided(dead *rdma.PeerError) bool {
	return j.views != nil && j.T.State(dead.Rank) == nil
}

package libmalt

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"malt/internal/say"
	"malt/rdma"
)

// World is this rank's membership in a job. Its calls that wait serve one
// goroutine at a time; a second one gets ErrBusy.
type World struct {
	t         rdma.Transport
	rank      int
	size      int
	hosts     hosts
	localRank int
	timeout   time.Duration

	// marks are the words by which ranks tell each other where they are.
	marks     rdma.Words
	noted     atomic.Uint64 // in markWhere
	greetings atomic.Uint64 // in markGreeting
	telling   sync.Mutex    // for At
	told      uint64        // the count of the place told last

	gate    gate         // of the collective calls
	keeping atomic.Int32 // objects of which a call keeps its place

	// The collective stream: this rank's queue to all others, theirs to it.
	out     rdma.Outbox
	in      []stream       // by rank; own entry unused
	calls   atomic.Uint64  // collectives completed or given up
	unnamed map[string]int // objects made without a name, by kind
	scratch []byte         // for results that must not be half written
	touched []*Segment     // objects that the end of a collective call levels

	mu      sync.Mutex
	objects []*Segment // open, in the order of creation and of ids; appended to, else replaced
	untold  []*Segment // those with news for the others: see header.go
	memory  map[*byte]*memory
	closed  bool
	failed  *rdma.PeerError  // the first that a call has returned
	late    map[*gate]string // whose last wait ran into its timeout: what it said
	// Senders of a queue reuse slots that an away rank has not read. So while
	// this rank is away it must not use queues, and the other way round.
	queues int  // gathers and scatters in notify-ack under way
	away   bool // in a collective
}

// Words of each rank that all others read. What is looked at in every call lies in
// cache lines apart from what is stored in every call.
const (
	// markAway is the number of the collective that the rank waits in, or of the
	// last one; ended when it has left in good order. Whoever has itself
	// completed fewer collectives does not wait for the rank.
	markAway = iota * lineWords
	// markGaveUp is the last collective that the rank gave up, with, in the low
	// faultBits, the rank at fault: that is itself unless it gave up because
	// another one had, or because that rank had died: then with how, above rankBits.
	markGaveUp
	// markWhere tells what the rank is doing, for messages: see where.
	markWhere
	// markPlace and what follows tell where in its program the rank is: see At.
	markPlace = markWhere + 1
	// markGreeting is how often the rank has asked others for an answer: see greet.
	markGreeting = markPlace + 1 + placeWords
	markCount    = markGreeting + 1
)

const (
	ended     = math.MaxUint64
	faultBits = 20
	rankBits  = 16 // maxSize fits
)

// memory is one mapping handed to the caller.
type memory struct {
	bytes []byte
	owner *Segment // nil once it has been closed
}

// NewWorld joins the ranks of t. It waits until all of them have.
func NewWorld(ctx context.Context, t rdma.Transport, c Config) (*World, error) {
	w := &World{
		t: t, rank: t.Rank(), size: t.Size(), localRank: slices.Index(t.Near(), t.Rank()), timeout: c.Timeout,
		in: make([]stream, t.Size()), memory: map[*byte]*memory{}, unnamed: map[string]int{}, late: map[*gate]string{},
	}
	if w.timeout <= 0 {
		w.timeout = DefaultTimeout
	}
	others := make([]int, 0, w.size)
	for r := range w.size {
		if r != w.rank {
			others = append(others, r)
		}
	}
	spec := rdma.Spec{Bytes: chunkBytes, Depth: chunkDepth, About: "collectives"}
	err := func() (err error) {
		if w.marks, err = t.Words(ctx, "world", markCount); err != nil {
			return err
		}
		if len(others) == 0 {
			w.hosts, err = hostsOf([][]byte{w.tellHost()}, t.Near())
			return err
		}
		if w.out, err = t.Publish(ctx, "world", spec, others); err != nil {
			return err
		}
		inboxes, err := t.Subscribe(ctx, "world", spec, others)
		if err != nil {
			return err
		}
		for _, in := range inboxes {
			w.in[in.From()].inbox = in
		}
		// Nobody leaves before everybody has joined.
		c, err := w.collect(ctx, opOf("malt.init", "", nil), w.tellHost())
		if err == nil {
			w.hosts, err = hostsOf(c.sink.(*keep).parts, t.Near())
		}
		return err
	}()
	if err != nil {
		if ctx.Err() != nil {
			return nil, late(ctx, err)
		}
		return nil, err
	}
	return w, nil
}

// String names the job in messages.
func (w *World) String() string { return "the job" }

// Rank is this process's number, 0 … Size()-1.
func (w *World) Rank() int { return w.rank }

// Size is the number of ranks.
func (w *World) Size() int { return w.size }

// LocalRank is this rank's place among those of its machine.
func (w *World) LocalRank() int { return w.localRank }

// Generation is the membership number: it changes when the set of ranks does.
func (w *World) Generation() uint64 { return 1 }

// Timeout is the job's own, for calls that name none.
func (w *World) Timeout() time.Duration { return w.timeout }

// Traffic counts what went to and came from peer, over all objects.
func (w *World) Traffic(peer int) rdma.Traffic { return w.t.Traffic(peer) }

// Abort publishes this rank's own death: every wait of the others for it fails
// with why, which is rdma.HasFailed, or the death that this rank ends because of.
// A death that one of its calls has returned comes before what it says of itself.
func (w *World) Abort(why *rdma.PeerError) {
	w.mu.Lock()
	if w.failed != nil && why.Rank == w.rank {
		why = w.failed
	}
	w.mu.Unlock()
	w.t.Abort(why.Heard(w.rank, w.rank, w.size))
}

// Close leaves the job in good order, and the others no longer wait for this rank;
// after a failure (failing.go) it leaves as dead, as by Abort.
// Memory of its objects stays valid until Unmap. ErrBusy, and nothing is closed,
// while another goroutine is in a call, or an object in a fold: it is reading
// memory that Close gives back.
func (w *World) Close() error {
	if !w.gate.mu.TryLock() {
		return busy(w)
	}
	defer w.gate.mu.Unlock()
	objects := w.open()
	for i, s := range objects {
		if !s.gate.mu.TryLock() {
			for _, locked := range objects[:i] {
				locked.gate.mu.Unlock()
			}
			return busy(s)
		}
	}
	w.mu.Lock()
	closed := w.closed
	w.closed, w.objects = true, nil
	w.mu.Unlock()
	if closed {
		return nil
	}
	if why := w.failure(); why != nil {
		w.Abort(why) // before anything that others could take for an end in good order
	}
	w.gate.giveUp()
	w.marks.Set(markAway, ended)
	var err error
	for _, s := range objects {
		err = firstOf(err, s.shut())
		s.gate.mu.Unlock()
	}
	if w.scratch != nil {
		err = firstOf(err, w.t.Unmap(w.scratch))
	}
	return firstOf(err, w.t.Close())
}

// alloc makes the memory of s, at least one byte: an empty array has an address,
// too.
func (w *World) alloc(s *Segment, bytes int) (err error) {
	b := []byte(nil)
	if s.shared, err = s.share(bytes); err == nil && s.shared == nil {
		s.across, err = s.shareAcross(bytes)
	}
	switch {
	case err != nil:
	case s.shared != nil:
		b = s.shared.Bytes(w.rank)
	case s.across != nil:
		b = s.across.near.Bytes(w.rank)
	default:
		b, err = w.t.Map(max(bytes, 1))
	}
	if err != nil {
		return err
	}
	s.data, s.base = b[:bytes:bytes], &b[0]
	w.mu.Lock()
	defer w.mu.Unlock()
	w.memory[s.base] = &memory{b, s}
	return nil
}

// disown marks the memory of s as no longer in use by MALT.
func (w *World) disown(s *Segment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m := w.memory[s.base]; m != nil {
		m.owner = nil
	}
}

// Unmap gives back the memory of an object that has been closed. first is its
// first byte. It works after Close, too.
func (w *World) Unmap(first *byte) error {
	w.mu.Lock()
	m := w.memory[first]
	if m != nil && m.owner == nil {
		delete(w.memory, first)
	}
	w.mu.Unlock()
	switch {
	case m == nil:
		return say.Errorf(ErrInvalid, "%p is not the memory of a vector or segment, or was unmapped before", first)
	case m.owner != nil:
		return say.Errorf(ErrBusy, "the memory of %s cannot be unmapped while it is open", m.owner).Try("Close it first.")
	}
	return w.t.Unmap(m.bytes)
}

// enlist makes s known to levelling and Close.
func (w *World) enlist(s *Segment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.objects = append(w.objects, s) // behind what those have who read it now
}

func (w *World) delist(s *Segment) {
	s.gone.Store(true)
	s.changed()
	w.mu.Lock()
	defer w.mu.Unlock()
	for i, o := range w.objects {
		if o == s {
			w.objects = append(w.objects[:i:i], w.objects[i+1:]...)
			return
		}
	}
}

// where encodes what a rank is doing into one word: an activity, the object's
// number and its clock.
type where uint64

const (
	inCompute where = iota // the object is the one it used last
	inGather
	inScatter
	inCollective
)

const idMask = 1<<20 - 1 // of an object's number in it

// doing is what rank has noted of itself.
func (w *World) doing(rank int) (activity where, id uint32, clock uint64, err error) {
	v, err := w.marks.Get(rank, markWhere)
	return where(v >> 60), uint32(v >> 40 & idMask), v & (1<<40 - 1), err
}

// calling is the collective call that rank is in, and the object that it is about, 0
// for none.
func (w *World) calling(rank int) (id uint32, n uint64, there bool) {
	activity, id, n, err := w.doing(rank)
	return id, n, err == nil && activity == inCollective
}

// note tells the others, when they look, what this rank is doing.
func (w *World) note(activity where, id uint32, clock uint64) {
	v := uint64(activity)<<60 | uint64(id&idMask)<<40 | clock&(1<<40-1)
	if w.noted.Swap(v) != v { // a call that waits looks many times
		w.marks.Put(markWhere, v)
	}
}

// whereabouts is a clause on what rank is doing, and where in its program: in a
// call there, or since it has come back from one.
func (w *World) whereabouts(rank int) string {
	activity, id, clock, err := w.doing(rank)
	if err != nil {
		return "gone"
	}
	object := ""
	w.mu.Lock()
	for _, s := range w.objects {
		if s.id&idMask == id {
			object = fmt.Sprintf(" %s at clock %d", s, clock)
		}
	}
	w.mu.Unlock()
	call, place := ", ", w.place(rank)
	doing := "computing"
	switch activity {
	case inGather:
		doing = "waiting in a gather of" + object
	case inScatter:
		doing = "waiting in a scatter of" + object
	case inCollective:
		doing = "waiting in a collective call"
	default:
		call = ", its last call: "
		if object != "" {
			doing += ", last used" + object
		}
	}
	if place == "" {
		return doing
	}
	return doing + call + place
}

// describe lists ranks and where they are, for messages about waits; do is the advice
// where a connection shows the cause.
func (w *World) describe(ranks []int) (text, do string) {
	shown := ranks[:min(len(ranks), 4)]
	w.greet(shown)
	var b strings.Builder
	for i, r := range shown {
		if i > 0 {
			b.WriteString(", ")
		}
		c := w.connection(r)
		do = cmp.Or(do, c.do)
		fmt.Fprintf(&b, "rank %d (%s%s)", r, w.whereabouts(r), c.clause)
	}
	if more := len(ranks) - len(shown); more > 0 {
		fmt.Fprintf(&b, " and %d more", more)
	}
	return b.String(), do
}

// useQueue lets a step of a gather or scatter in notify-ack use its queues,
// until leaveQueue.
func (w *World) useQueue(s *Segment) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away {
		return say.Errorf(ErrBusy, "%s cannot be used while this rank is in a collective call", s).
			At("that call is of another thread, or keeps its place after a timeout; notify-ack does not allow both").Try("Wait until it is over.")
	}
	w.queues++
	return nil
}

func (w *World) leaveQueue() {
	w.mu.Lock()
	w.queues--
	w.mu.Unlock()
}

// startAway begins a collective, stopAway ends it.
func (w *World) startAway(op string, n uint64, about *Segment) error {
	if w.keeping.Load() > 0 {
		for _, s := range w.open() {
			s.goAway()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queues > 0 {
		return say.Errorf(ErrBusy, "%s cannot be made during a gather or scatter in notify-ack", op).In(op).
			At("another thread is in that call, or this one in a fold").Try("Wait for it first.")
	}
	w.away = true
	id := uint32(0)
	if about != nil {
		id = about.id
	}
	w.note(inCollective, id, n)
	w.marks.Set(markAway, n)
	return nil
}

func (w *World) stopAway() {
	w.mu.Lock()
	w.away = false
	w.mu.Unlock()
}

// isAway tells whether rank is inside a collective that this rank has not
// completed, or has left. PROTOCOLS, join rule.
func (w *World) isAway(rank int) (bool, error) {
	n, err := w.marks.Get(rank, markAway)
	return n > w.calls.Load(), err
}

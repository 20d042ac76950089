package core

import (
	"math"
	"slices"

	"malt/internal/say"
	"malt/libmalt/reduce"
	"malt/rdma"
)

// Collectives travel as a stream of messages through one queue per rank that
// all others read. Collective n sends a header that says which call it is and
// what is new about where this rank is with each object, then its data in chunks; every
// message has n as its tag. A reader that is ahead or behind is found by the tag, one
// that makes another call by the header.
//
// A call may have several parts, each with a header and data: all parts have the
// same number, so that wherever a rank gives the call up, the next call has the
// same number on all ranks.
const (
	ChunkBytes = 256 << 10
	chunkDepth = 4
	// withHeader is the most data that travels in the header's own message, unless a job
	// says otherwise. The rest of a chunk is for the header, with news of some 9,000
	// objects; further news come before it.
	withHeader = 64 << 10
)

// stream is what this rank has received of another's collectives.
type stream struct {
	inbox rdma.Inbox
	next  rdma.Update // not consumed yet, if has
	has   bool
	heard uint64 // the call of the last header that was read,
	part  uint16 // the part,
	view  uint64 // and the attempt
}

func (s *stream) release() {
	s.inbox.Release(s.next.Seq)
	s.has = false
}

// Sink is what a collective call does with the data of the other ranks.
type Sink interface {
	// Begin is called once, before anything is sent; an error gives the call up.
	Begin(c *Collective) error
	// Expect tells how many bytes will come from rank.
	Expect(rank int, total uint64) error
	// Chunk takes the bytes at off of rank's data. false: not before the other
	// ranks' chunks are there, too. It says Taken of each chunk that it is done with.
	Chunk(c *Collective, rank, off int, b []byte) bool
	// Finish is called once when everything has come.
	Finish(c *Collective)
	// Result is what Finish has made of it, the same on all ranks, in pieces. They stay as
	// they are until the next call has finished: see settling. Give makes room for the pieces
	// of another rank's Result, of a call among these ranks; then Finish is called.
	Result() [][]byte
	Give(c *Collective, ranks []int, lengths []uint64) ([][]byte, error)
}

// Collective is one collective call, or one part of it. As a Call it goes by the route of
// the object that it is about.
type Collective struct {
	Job  *Job
	Data []byte // what this rank sends

	n      uint64
	view   rdma.View // of this attempt: see attempt.go
	among  []int     // whose data a route has folded, instead of the view's
	part   uint16
	last   bool    // no part follows
	op     string  // what must be the same on all ranks
	about  *Member // whose values it replaces, if any
	inside *Member // whose gate the caller has locked: about, or see Within
	sink   Sink
	begun  bool // the others may be waiting for this rank
	ready  bool // so is sink
	sent   int  // bytes of data; -1 before the header
	from   []arrival
	late   []int           // ranks that the last step could not go on without
	fault  int             // the rank that made it fail: this one, until another was seen to
	died   *rdma.PeerError // that rank's death, if it is dead
	own    []news          // on its card
	told   []heard         // what its end has levelled, where survivors settle
}

// arrival is how far one rank's data has come.
type arrival struct {
	header bool
	total  int
	got    int
}

// Collective makes the next collective call of j: op is what must be the same on all
// ranks, about the object whose values it replaces; nil: none.
func (j *Job) Collective(op string, about *Member, data []byte, s Sink) *Collective {
	return (&Collective{from: make([]arrival, j.Size)}).Again(j, op, about, data, s)
}

// Again is Job.Collective in the memory of c, a call that is over.
func (c *Collective) Again(j *Job, op string, about *Member, data []byte, s Sink) *Collective {
	return c.begin(j, j.Adopt(), op, about, data, s)
}

func (c *Collective) begin(j *Job, v rdma.View, op string, about *Member, data []byte, s Sink) *Collective {
	clear(c.from)
	*c = Collective{
		Job: j, Data: data, n: j.calls.Load() + 1, view: v, last: true, op: Brief(op), about: about, inside: about, sink: s, sent: -1,
		from: c.from, late: c.late[:0], fault: j.Rank, own: c.own[:0],
	}
	return c
}

// Within says that the caller has locked the gate of m.
func (c *Collective) Within(m *Member) { c.inside = m }

// InParts says that another part follows this one.
func (c *Collective) InParts() { c.last = false }

// Next is the part that follows, in the same view.
func (c *Collective) Next(data []byte, s Sink, last bool) *Collective {
	n := (&Collective{from: make([]arrival, c.Job.Size)}).begin(c.Job, c.view, c.op, nil, data, s)
	n.begun, n.part, n.last, n.inside = true, c.part+1, last, c.inside
	return n
}

// Last tells whether no part follows.
func (c *Collective) Last() bool { return c.last }

// Got is how much of a rank's data has come.
func (c *Collective) Got(rank int) int { return c.from[rank].got }

func (c *Collective) Step() (bool, error) {
	done, err := c.attempts(c.advance)
	switch {
	case err != nil:
		err = c.explain(err)
		c.Fail(err)
		c.quit()
	case done:
		c.sink.Finish(c)
		if c.last {
			c.End()
		}
		c.keep()
	}
	return done, err
}

// Enter has the others know that this rank is in the call. It has to wait until
// nobody writes into the array that it is about.
func (c *Collective) Enter() (bool, error) {
	if err := c.arrive(); err != nil {
		return false, err
	}
	if c.late = c.late[:0]; c.about != nil {
		if c.late = c.about.Body.Writers(c.late); len(c.late) > 0 {
			return false, nil
		}
	}
	return true, nil
}

// arrive has the others know that this rank is in the call.
func (c *Collective) arrive() error {
	if c.begun {
		return nil
	}
	if err := c.Job.startAway(CallOf(c.op), c.n, c.about); err != nil {
		return err
	}
	c.begun = true
	// A rank that has given it up may have sent since, and this one may have folded that: so
	// it is not where all are before the call.
	if err := c.checkReaders(); err != nil {
		return err
	}
	return c.exhaust()
}

// advance sends and receives what can be.
func (c *Collective) advance() (bool, error) {
	if entered, err := c.Enter(); !entered || err != nil {
		return false, err
	}
	if !c.ready {
		if err := c.sink.Begin(c); err != nil {
			return false, err
		}
		c.ready = true
	}
	for {
		sent, err := c.send()
		if err != nil {
			return false, err
		}
		received, moved, err := c.receive()
		if err != nil || sent && received {
			return err == nil, err
		}
		// What was released may have made room to send, and the other way round.
		if !moved {
			return false, nil
		}
	}
}

// send puts as much as fits into the queue; true when all is sent.
func (c *Collective) send() (bool, error) {
	if c.sent < 0 && c.Job.out == nil {
		list, _ := c.Job.news(nil, math.MaxInt)
		c.Job.hearOwn(list)
		c.sent = len(c.Data)
	}
	for c.sent < len(c.Data) {
		b, err := c.Job.out.Begin()
		if err != nil {
			return false, err
		}
		if b == nil {
			return false, c.checkReaders()
		}
		n, kind := 0, c.part
		switch {
		case c.sent < 0:
			var more bool
			if n, more = c.putHeader(b); more {
				kind = kindNews
				break
			}
			c.sent = 0
			if len(c.Data) <= c.Job.small {
				c.sent = reduce.Copy(b[n:], c.Data)
				n += c.sent
			}
		default:
			n = reduce.Copy(b, c.Data[c.sent:])
			c.sent += n
		}
		if err := c.Job.out.Commit(n, rdma.Stamp{Tag: c.n, Age: c.attempt(), Kind: kind}, nil); err != nil {
			return false, err
		}
	}
	return true, nil
}

// checkReaders looks for readers that will never make room in the queue.
func (c *Collective) checkReaders() error {
	for _, r := range c.view.Ranks {
		if r != c.Job.Rank {
			if err := c.gone(r); err != nil && err != errAttempt {
				return c.Because(r, err)
			}
		}
	}
	return nil
}

// receive takes what has come. all: nothing more is to come. moved: something
// was taken.
func (c *Collective) receive() (all, moved bool, err error) {
	all = true
	c.late = c.late[:0]
	for _, r := range c.view.Ranks {
		for r != c.Job.Rank && !c.from[r].complete() {
			took, there, err := c.consume(r)
			if err != nil {
				return false, moved, err
			}
			moved = moved || took
			if !took {
				all = false
				if !there {
					c.late = append(c.late, r)
				}
				break
			}
		}
	}
	return all, moved, nil
}

func (p *arrival) complete() bool { return p.header && p.got == p.total }

// consume takes one message of rank. there: a message has come, though the sink
// may have to keep it for a while.
func (c *Collective) consume(rank int) (took, there bool, err error) {
	s, p := &c.Job.in[rank], &c.from[rank]
	if there, err = c.peek(rank); err != nil || !there {
		return false, false, err
	}
	b := s.next.Data
	if !p.header {
		if err := c.getHeader(rank, b); err != nil {
			return false, true, err
		}
		p.header = true
		if p.total > c.Job.small || p.total == 0 {
			s.release()
			return true, true, nil
		}
	}
	if p.total <= c.Job.small {
		b = b[len(b)-p.total:] // behind the header
	} else if want := min(ChunkBytes, p.total-p.got); len(b) != want {
		return false, true, say.Errorf(rdma.ErrCorrupt, "%s: rank %d sent %d bytes, expected %d", CallOf(c.op), rank, len(b), want)
	}
	return c.sink.Chunk(c, rank, p.got, b), true, nil
}

// Taken is called by the sink, through Chunk, for every chunk that it is done
// with.
func (c *Collective) Taken(rank, bytes int) {
	c.from[rank].got += bytes
	c.Job.in[rank].release()
}

// peek makes the next message of this part the stream's next one, if it has
// come. Messages of collectives given up are dropped.
func (c *Collective) peek(rank int) (bool, error) {
	s := &c.Job.in[rank]
	for {
		if !s.has {
			// Before Next: what the rank sent before it went is not lost.
			gone := c.gone(rank)
			var err error
			if s.next, s.has, err = s.inbox.Next(); err != nil {
				return false, err
			}
			if !s.has {
				return false, gone
			}
		}
		switch {
		case s.next.Tag < c.n || s.next.Tag == c.n && (s.next.Kind == kindNews || s.next.Kind != kindReason && s.next.Age < c.attempt()):
			if err := c.drop(rank); err != nil {
				return false, err
			}
		case s.next.Tag > c.n: // it has given up this one, though its word of that may come behind
			return false, c.gone(rank)
		case s.next.Kind == kindReason:
			return false, c.ReadReason(rank, s.next.Data)
		case s.next.Age > c.attempt() && c.Job.Settles():
			return false, nil // this rank hears of that view soon
		case s.next.Age > c.attempt():
			return false, errAttempt
		case s.next.Kind != c.part:
			return false, say.Errorf(rdma.ErrCorrupt, "%s: rank %d sent part %d, expected %d", CallOf(c.op), rank, s.next.Kind, c.part)
		default:
			return true, nil
		}
	}
}

// Look takes nothing, but tells whether the call can still come about; late are
// the ranks that have yet to send for this part. One that has come and is gone
// again has taken its memory along.
func (c *Collective) Look() error {
	_, err := c.attempts(func() (bool, error) { return false, c.look() }) // nothing has been sent in this part
	return err
}

func (c *Collective) look() error {
	c.late = c.late[:0]
	for _, r := range c.view.Ranks {
		if r == c.Job.Rank {
			continue
		}
		there, err := c.peek(r)
		if err == nil {
			if err = c.gone(r); err != nil && err != errAttempt {
				err = c.Because(r, err)
			}
		}
		if err != nil {
			return err
		}
		if !there {
			c.late = append(c.late, r)
		}
	}
	return nil
}

// End completes the collective: clocks are raised to the largest. What was sent
// before counts as seen where the collective has given the object new values, and
// in queues, of which a sender may have reused slots meanwhile. Elsewhere a
// gather after a barrier finds what was scattered before it.
func (c *Collective) End() {
	c.Job.calls.Store(c.n)
	ranks := c.view.Ranks
	if c.among != nil {
		ranks = c.among
	}
	if len(ranks) != c.Job.met {
		// A rank that is gone since the last call may have reused slots of any queue: it
		// did not have to wait for this one, which was in the call.
		c.Job.met = len(ranks)
		for _, s := range c.Job.open() {
			c.Job.touch(s)
		}
	}
	c.Job.enter(c.view)
	if c.about != nil {
		c.Job.touch(c.about)
	}
	var among []int
	if c.Job.Settles() {
		among = ranks
	}
	for _, s := range c.Job.touched {
		s.touched = false
		if c.Job.Settles() {
			c.told = append(c.told, heard{s.ID, slices.Clone(s.told)})
		}
		if !s.gone.Load() {
			l := s.stood(among)
			l.Seen, l.Among = s == c.about, ranks
			s.levelTo(l)
		}
	}
	c.Job.touched = c.Job.touched[:0]
	c.Job.stopAway()
	c.Job.Marks.Trace.bytes.Add(uint64(len(c.Data) * (len(ranks) - 1)))
	c.Job.Marks.Note(InCompute, 0, 0)
}

// GiveUp ends the call for this rank alone: the others must not wait for what it
// has not sent, but for the rank itself again.
//
// Senders of queues that have not seen yet that it is back may be reusing slots
// that it has not read: at most for the update behind the head, since they look
// before each. So what may be overwritten counts as seen (Inbox.Return, after the
// mark is taken back, which is an exchange), and what is behind it is waited for.
func (c *Collective) GiveUp() {
	c.quit()
	c.Job.Marks.Set(MarkAway, 0)
	for _, s := range c.Job.open() {
		l := c.Job.unread()
		l.Back = true
		s.levelTo(l)
		c.Job.touch(s)
	}
	c.Job.Marks.Set(MarkGaveUp, c.n<<FaultBits|c.blamed())
	c.Job.calls.Store(c.n)
	c.Job.stopAway()
	c.Job.Marks.Note(InCompute, 0, 0)
	c.Job.Freed()
}

func (c *Collective) Name() string { return CallOf(c.op) }

func (c *Collective) Waiting() Wait {
	if len(c.late) > 0 {
		return c.Job.waitFor(c.Name(), c.late, allMustCall, "different-calls")
	}
	slow := c.Job.waitFor(c.Name(), c.slowest(), allMustCall, "different-calls")
	slow.Whom += " to take what was sent"
	return slow
}

// slowest are the ranks that have taken the least of what this one has sent.
func (c *Collective) slowest() (ranks []int) {
	least := uint64(math.MaxUint64)
	for _, r := range c.view.Ranks {
		if r == c.Job.Rank {
			continue
		}
		switch acked := c.Job.out.Acked(r); {
		case acked < least:
			least, ranks = acked, []int{r}
		case acked == least:
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// Level is where the ranks are with one object when they meet in a collective.
type Level struct {
	Clock uint64   // the largest
	Heads []uint64 // by rank: the last seq that it has sent; AllSeen if it has closed the object
	Seen  bool     // what was sent up to there counts as seen
	Back  bool     // this rank has given the call up
	Among []int    // the ranks of the call: what others have left counts as all that they have sent; nil: not known
}

const AllSeen = math.MaxUint64

// unread is the level of an object that does not know where the others are: what
// they have sent may be gone.
func (j *Job) unread() *Level {
	l := &Level{Heads: make([]uint64, j.Size)}
	for r := range l.Heads {
		l.Heads[r] = AllSeen
	}
	return l
}

package libmalt

import (
	"math"

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
	chunkBytes = 256 << 10
	chunkDepth = 4
	// withHeader is the most data that travels in the header's own message. The
	// rest of a chunk is for the header, with news of some 9,000 objects; further news
	// come before it.
	withHeader = 64 << 10
)

// stream is what this rank has received of another's collectives.
type stream struct {
	inbox rdma.Inbox
	next  rdma.Update // not consumed yet, if has
	has   bool
	heard uint64 // the call of the last header that was read,
	part  uint16 // and the part
}

func (s *stream) release() {
	s.inbox.Release(s.next.Seq)
	s.has = false
}

// collective is one call on its way, or one part of it.
type collective struct {
	w     *World
	n     uint64
	part  uint16
	last  bool     // no part follows
	op    string   // what must be the same on all ranks
	about *Segment // whose values it replaces, if any
	data  []byte   // what this rank sends
	sink  sink
	begun bool // the others may be waiting for this rank
	ready bool // so is sink
	sent  int  // bytes of data; -1 before the header
	from  []progress
	late  []int           // ranks that the last step could not go on without
	fault int             // the rank that made it fail: this one, until another was seen to
	died  *rdma.PeerError // that rank's death, if it is dead
}

// progress is how far one rank's data has come.
type progress struct {
	header bool
	total  int
	got    int
}

func (w *World) collective(op string, data []byte, s sink) *collective {
	c := &collective{from: make([]progress, w.size)}
	c.set(w, op, data, s)
	return c
}

// set makes c the next call of w, which reuses what c has made.
func (c *collective) set(w *World, op string, data []byte, s sink) {
	clear(c.from)
	*c = collective{
		w: w, n: w.calls.Load() + 1, last: true, op: brief(op), data: data, sink: s, sent: -1,
		from: c.from, late: c.late[:0], fault: w.rank,
	}
}

// moveTo makes a call that kept its place go on with data in place of what it
// began with. The caller says that the contents are the same; the old memory may
// be gone.
func (c *collective) moveTo(data []byte) error {
	if len(data) != len(c.data) {
		return say.Errorf(ErrInvalid, "%s of %d bytes: it keeps its place after a timeout, and was begun with %d", callOf(c.op), len(data), len(c.data)).
			In(callOf(c.op)).Try("Make the same call again, or cancel it first.")
	}
	c.data = data
	if m, ok := c.sink.(*combine); ok {
		m.dst = data
	}
	return nil
}

func (c *collective) step() (bool, error) {
	done, err := c.advance()
	switch {
	case err != nil:
		err = c.explain(err)
		c.fail(err)
	case done:
		c.sink.finish(c)
		if c.last {
			c.end()
		}
	}
	return done, err
}

// enter has the others know that this rank is in the call. It has to wait until
// nobody writes into the array that it is about.
func (c *collective) enter() (bool, error) {
	if !c.begun {
		if err := c.w.startAway(callOf(c.op), c.n, c.about); err != nil {
			return false, err
		}
		c.begun = true
		// Who has given it up may have sent since, and this rank may have folded
		// that: so it is not where all are before the call.
		if err := c.checkReaders(); err != nil {
			return false, err
		}
	}
	if c.late = c.late[:0]; c.about != nil {
		if c.late = c.about.unreduced(c.late); len(c.late) > 0 {
			return false, nil
		}
	}
	return true, nil
}

// advance sends and receives what can be.
func (c *collective) advance() (bool, error) {
	if entered, err := c.enter(); !entered || err != nil {
		return false, err
	}
	if !c.ready {
		if err := c.sink.begin(c); err != nil {
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
func (c *collective) send() (bool, error) {
	if c.sent < 0 && c.w.out == nil {
		list, _ := c.w.news(nil, math.MaxInt)
		c.w.hearOwn(list)
		c.sent = len(c.data)
	}
	for c.sent < len(c.data) {
		b, err := c.w.out.Begin()
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
			if len(c.data) <= withHeader {
				c.sent = reduce.Copy(b[n:], c.data)
				n += c.sent
			}
		default:
			n = reduce.Copy(b, c.data[c.sent:])
			c.sent += n
		}
		if err := c.w.out.Commit(n, rdma.Stamp{Tag: c.n, Kind: kind}, nil); err != nil {
			return false, err
		}
	}
	return true, nil
}

// checkReaders looks for readers that will never make room in the queue.
func (c *collective) checkReaders() error {
	for r := range c.w.size {
		if r != c.w.rank {
			if err := c.gone(r, c.w.t.State(r)); err != nil {
				return c.because(r, err)
			}
		}
	}
	return nil
}

// receive takes what has come. all: nothing more is to come. moved: something
// was taken.
func (c *collective) receive() (all, moved bool, err error) {
	all = true
	c.late = c.late[:0]
	for r := range c.from {
		for r != c.w.rank && !c.from[r].complete() {
			took, there, err := c.take(r)
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

func (p *progress) complete() bool { return p.header && p.got == p.total }

// take consumes one message of rank. there: a message has come, though the sink
// may have to keep it for a while.
func (c *collective) take(rank int) (took, there bool, err error) {
	s, p := &c.w.in[rank], &c.from[rank]
	if there, err = c.peek(rank); err != nil || !there {
		return false, false, err
	}
	b := s.next.Data
	if !p.header {
		if err := c.getHeader(rank, b); err != nil {
			return false, true, err
		}
		p.header = true
		if p.total > withHeader || p.total == 0 {
			s.release()
			return true, true, nil
		}
	}
	if p.total <= withHeader {
		b = b[len(b)-p.total:] // behind the header
	} else if want := min(chunkBytes, p.total-p.got); len(b) != want {
		return false, true, say.Errorf(rdma.ErrCorrupt, "%s: rank %d sent %d bytes, expected %d", callOf(c.op), rank, len(b), want)
	}
	return c.sink.chunk(c, rank, p.got, b), true, nil
}

// taken is called by the sink, through chunk, for every chunk that it is done
// with.
func (c *collective) taken(rank, bytes int) {
	c.from[rank].got += bytes
	c.w.in[rank].release()
}

// peek makes the next message of this part the stream's next one, if it has
// come. Messages of collectives given up are dropped.
func (c *collective) peek(rank int) (bool, error) {
	s := &c.w.in[rank]
	for {
		if !s.has {
			// Before Next: what the rank sent before it went is not lost.
			gone := c.gone(rank, c.w.t.State(rank))
			var err error
			if s.next, s.has, err = s.inbox.Next(); err != nil {
				return false, err
			}
			if !s.has {
				return false, gone
			}
		}
		switch {
		case s.next.Tag < c.n || s.next.Tag == c.n && s.next.Kind == kindNews:
			if err := c.drop(rank); err != nil {
				return false, err
			}
		case s.next.Tag > c.n: // it has given up this one, though its word of that may come behind
			return false, c.gone(rank, c.w.t.State(rank))
		case s.next.Kind == kindReason:
			return false, c.readReason(rank, s.next.Data)
		case s.next.Kind != c.part:
			return false, say.Errorf(rdma.ErrCorrupt, "%s: rank %d sent part %d, expected %d", callOf(c.op), rank, s.next.Kind, c.part)
		default:
			return true, nil
		}
	}
}

// look takes nothing, but tells whether the call can still come about; late are
// the ranks that have yet to send for this part. One that has come and is gone
// again has taken its memory along.
func (c *collective) look() error {
	c.late = c.late[:0]
	for r := range c.w.size {
		if r == c.w.rank {
			continue
		}
		there, err := c.peek(r)
		if err != nil {
			return err
		}
		if err := c.gone(r, c.w.t.State(r)); err != nil {
			return c.because(r, err)
		}
		if !there {
			c.late = append(c.late, r)
		}
	}
	return nil
}

// end completes the collective: clocks are raised to the largest. What was sent
// before counts as seen where the collective has given the object new values, and
// in queues, of which a sender may have reused slots meanwhile. Elsewhere a
// gather after a barrier finds what was scattered before it.
func (c *collective) end() {
	c.w.calls.Store(c.n)
	if c.about != nil {
		c.w.touch(c.about)
	}
	for _, s := range c.w.touched {
		s.touched = false
		if !s.gone.Load() {
			l := s.stood()
			l.seen = s == c.about
			s.levelTo(l)
		}
	}
	c.w.touched = c.w.touched[:0]
	c.w.stopAway()
	c.w.note(inCompute, 0, 0)
}

// giveUp ends the call for this rank alone: the others must not wait for what it
// has not sent, but for the rank itself again.
//
// Senders of queues that have not seen yet that it is back may be reusing slots
// that it has not read: at most for the update behind the head, since they look
// before each. So what may be overwritten counts as seen (Inbox.Return, after the
// mark is taken back, which is an exchange), and what is behind it is waited for.
func (c *collective) giveUp() {
	c.w.marks.Set(markAway, 0)
	for _, s := range c.w.open() {
		l := c.w.unread()
		l.back = true
		s.levelTo(l)
		c.w.touch(s)
	}
	c.w.marks.Set(markGaveUp, c.n<<faultBits|c.blamed())
	c.w.calls.Store(c.n)
	c.w.stopAway()
	c.w.note(inCompute, 0, 0)
}

func (c *collective) suspend() {}

func (c *collective) call() string { return callOf(c.op) }

func (c *collective) waiting() wait {
	if len(c.late) > 0 {
		return c.w.waitFor(c.call(), c.late, allMustCall, "elsewhere")
	}
	slow := c.w.waitFor(c.call(), c.slowest(), allMustCall, "elsewhere")
	slow.whom += " to take what was sent"
	return slow
}

// slowest are the ranks that have taken the least of what this one has sent.
func (c *collective) slowest() (ranks []int) {
	least := uint64(math.MaxUint64)
	for r := range c.w.size {
		if r == c.w.rank {
			continue
		}
		switch acked := c.w.out.Acked(r); {
		case acked < least:
			least, ranks = acked, []int{r}
		case acked == least:
			ranks = append(ranks, r)
		}
	}
	return ranks
}

// level is where the ranks are with one object when they meet in a collective.
type level struct {
	clock uint64   // the largest
	heads []uint64 // by rank: the last seq that it has sent; allSeen if it has closed the object
	seen  bool     // what was sent up to there counts as seen
	back  bool     // this rank has given the call up
}

const allSeen = math.MaxUint64

// unread is the level of an object that does not know where the others are: what
// they have sent may be gone.
func (w *World) unread() *level {
	l := &level{heads: make([]uint64, w.size)}
	for r := range l.heads {
		l.heads[r] = allSeen
	}
	return l
}

// stood is the level of s by what the ranks have told last.
func (s *Segment) stood() *level {
	l := &level{heads: make([]uint64, len(s.told))}
	for r, at := range s.told {
		l.clock, l.heads[r] = max(l.clock, at.clock), at.head
	}
	return l
}

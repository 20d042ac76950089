package libmalt

import (
	"encoding/binary"
	"errors"
	"fmt"

	"malt/libmalt/reduce"
	"malt/rdma"
)

// Collectives travel as a stream of messages through one queue per rank that
// all others read. Collective n sends a header that says which call it is and
// where this rank is with each object, then its data in chunks; every message has n as
// its tag. A reader that is ahead or behind is found by the tag, one that makes
// another call by the header.
const (
	chunkBytes = 256 << 10
	chunkDepth = 4
	// withHeader is the most data that travels in the header's own message. The
	// rest of a chunk is for the header: where some 9,000 objects are.
	withHeader = 64 << 10
)

// stream is what this rank has received of another's collectives.
type stream struct {
	inbox rdma.Inbox
	next  rdma.Update // not consumed yet, if has
	has   bool
}

func (s *stream) release() {
	s.inbox.Release(s.next.Seq)
	s.has = false
}

// sink is what a collective does with the data of the other ranks.
type sink interface {
	// expect tells how many bytes will come from rank.
	expect(rank int, total uint64) error
	// chunk takes the bytes at off of rank's data. false: not before the other
	// ranks' chunks are there, too.
	chunk(c *collective, rank, off int, b []byte) bool
	// finish is called once when everything has come.
	finish(c *collective)
}

// collective is one call on its way.
type collective struct {
	w     *World
	n     uint64
	op    string // what must be the same on all ranks
	data  []byte // what this rank sends
	sink  sink
	begun bool
	sent  int // bytes of data; -1 before the header
	from  []progress
	level map[uint32]*level // of each object
	late  []int             // ranks that the last step could not go on without
	fault int               // the rank that made it fail: this one, until another was seen to
}

// progress is how far one rank's data has come.
type progress struct {
	header bool
	total  int
	got    int
}

func (w *World) collective(op string, data []byte, s sink) *collective {
	return &collective{
		w: w, n: w.calls.Load() + 1, op: op, data: data, sink: s, sent: -1,
		from: make([]progress, w.size), level: map[uint32]*level{}, fault: w.rank,
	}
}

// moveTo makes a call that kept its place go on with data in place of what it
// began with. The caller says that the contents are the same; the old memory may
// be gone.
func (c *collective) moveTo(data []byte) error {
	if len(data) != len(c.data) {
		return failf(ErrInvalid, "%s: %d bytes; the call that keeps its place was begun with %d: make the same call again or cancel it first", c.op, len(data), len(c.data))
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
		// What this rank has not sent will never come: the others must know.
		c.giveUp()
	case done:
		c.sink.finish(c)
		c.end()
	}
	return done, err
}

// advance sends and receives what can be.
func (c *collective) advance() (bool, error) {
	if !c.begun {
		if err := c.w.startAway(c.op, c.n); err != nil {
			return false, err
		}
		c.begun = true
	}
	c.late = c.late[:0]
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
	if c.w.out == nil {
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
		n := 0
		if c.sent < 0 {
			c.sent = 0
			if n, err = c.putHeader(b); err != nil {
				return false, err
			}
			if len(c.data) <= withHeader {
				c.sent = copy(b[n:], c.data)
				n += c.sent
			}
		} else {
			n = copy(b, c.data[c.sent:])
			c.sent += n
		}
		if err := c.w.out.Commit(n, rdma.Stamp{Tag: c.n}, nil); err != nil {
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
				return err
			}
		}
	}
	return nil
}

// gone is the error where rank can no longer take part. state is the
// transport's word on it.
func (c *collective) gone(rank int, state error) error {
	var dead *rdma.PeerError
	if errors.As(state, &dead) {
		return &rdma.PeerError{Rank: rank, Op: c.op, Err: dead.Err}
	}
	if state != nil {
		c.fault = rank
		return failf(ErrLeft, "%s: rank %d has ended; all ranks must make this call", c.op, rank)
	}
	if mark, _ := c.w.marks.Get(rank, markGaveUp); mark>>faultBits >= c.n {
		c.fault = int(mark & (1<<faultBits - 1))
		return failf(ErrLeft, "%s: rank %d gave it up, after a timeout, an interrupt or an error of its own", c.op, c.fault)
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
		n, err := c.getHeader(rank, b)
		if err != nil {
			return false, true, err
		}
		p.header = true
		if p.total > withHeader || p.total == 0 {
			s.release()
			return true, true, nil
		}
		b = b[n:]
	} else if p.total <= withHeader {
		b = b[len(b)-p.total:] // kept by the sink at the last step
	}
	if len(b) > p.total-p.got {
		return false, true, fmt.Errorf("%w: %s: rank %d sent %d bytes more than it announced", rdma.ErrCorrupt, c.op, rank, len(b)-(p.total-p.got))
	}
	if !c.sink.chunk(c, rank, p.got, b) {
		return false, true, nil
	}
	return true, true, nil
}

// taken is called by the sink, through chunk, for every chunk that it is done
// with.
func (c *collective) taken(rank, bytes int) {
	c.from[rank].got += bytes
	c.w.in[rank].release()
}

// peek makes the next message of this collective the stream's next one, if it
// has come. Messages of collectives given up are dropped.
func (c *collective) peek(rank int) (bool, error) {
	s := &c.w.in[rank]
	for {
		if !s.has {
			// Before Next: what the rank sent before it went is not lost.
			state := c.w.t.State(rank)
			gone := c.gone(rank, state)
			var err error
			if s.next, s.has, err = s.inbox.Next(); err != nil {
				return false, err
			}
			if !s.has {
				return false, gone
			}
		}
		switch {
		case s.next.Tag < c.n:
			s.release()
		case s.next.Tag > c.n:
			if err := c.gone(rank, c.w.t.State(rank)); err != nil {
				return false, err
			}
			return false, fmt.Errorf("%w: %s: rank %d sends call %d before it has given up call %d", rdma.ErrCorrupt, c.op, rank, s.next.Tag, c.n)
		default:
			return true, nil
		}
	}
}

// end completes the collective: clocks are raised to the largest, and what was
// sent before it counts as seen.
func (c *collective) end() {
	c.w.calls.Store(c.n)
	for _, s := range c.w.open() {
		if l := c.level[s.id]; l != nil {
			s.levelTo(l)
		}
	}
	c.w.stopAway()
	c.w.note(inCompute, 0, 0)
}

// giveUp ends the collective for this rank alone: the others must not wait for
// what it has not sent, but for the rank itself again. It stays unable to read
// queues, since a sender may just be reusing a slot.
func (c *collective) giveUp() {
	c.w.marks.Put(markAway, 0)
	c.w.marks.Set(markGaveUp, c.n<<faultBits|uint64(c.fault))
	c.w.calls.Store(c.n)
	c.w.note(inCompute, 0, 0)
}

func (c *collective) waiting() string {
	if len(c.late) == 0 {
		return c.op + ": waited for room to send"
	}
	return fmt.Sprintf("%s: waited for %s", c.op, c.w.describe(c.late))
}

// level is where the ranks are with one object when they meet in a collective.
type level struct {
	clock uint64   // the largest
	heads []uint64 // by rank: the last seq that it has sent
}

func (c *collective) add(rank int, id uint32, clock, head uint64) {
	l := c.level[id]
	if l == nil {
		l = &level{heads: make([]uint64, c.w.size)}
		c.level[id] = l
	}
	l.clock = max(l.clock, clock)
	l.heads[rank] = head
}

// Header: length of op, op, bytes of data, number of objects, and of each its
// id, clock and head; all little endian.
const objectBytes = 4 + 8 + 8

func (c *collective) putHeader(b []byte) (int, error) {
	objects := c.w.open()
	if 2+len(c.op)+8+4+objectBytes*len(objects) > chunkBytes-withHeader {
		return 0, failf(ErrState, "%s: %d vectors and segments are open; close some", c.op, len(objects))
	}
	h := binary.LittleEndian.AppendUint16(b[:0], uint16(len(c.op)))
	h = append(h, c.op...)
	h = binary.LittleEndian.AppendUint64(h, uint64(len(c.data)))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(objects)))
	for _, s := range objects {
		clock, head := s.clock.Load(), s.head.Load()
		h = binary.LittleEndian.AppendUint32(h, s.id)
		h = binary.LittleEndian.AppendUint64(h, clock)
		h = binary.LittleEndian.AppendUint64(h, head)
		c.add(c.w.rank, s.id, clock, head)
	}
	return len(h), nil
}

var errHeader = fmt.Errorf("%w: malformed header of a collective", rdma.ErrCorrupt)

func (c *collective) getHeader(rank int, b []byte) (int, error) {
	op, total, objects, n, err := parseHeader(b)
	if err != nil {
		return 0, err
	}
	if op != c.op {
		return 0, failf(ErrMismatch, "this rank is in %s, rank %d in %s (collective call %d): all ranks must make the same calls in the same order", c.op, rank, op, c.n)
	}
	for ; len(objects) > 0; objects = objects[objectBytes:] {
		id := binary.LittleEndian.Uint32(objects)
		c.add(rank, id, binary.LittleEndian.Uint64(objects[4:]), binary.LittleEndian.Uint64(objects[12:]))
	}
	c.from[rank].total = int(total)
	return n, c.sink.expect(rank, total)
}

// parseHeader checks every length before it uses it. n is where the data
// begins.
func parseHeader(b []byte) (op string, total uint64, objects []byte, n int, err error) {
	const fixed = 2 + 8 + 4
	if len(b) < fixed {
		return "", 0, nil, 0, errHeader
	}
	l := int(binary.LittleEndian.Uint16(b))
	if len(b) < fixed+l {
		return "", 0, nil, 0, errHeader
	}
	op, b = string(b[2:2+l]), b[2+l:]
	total = binary.LittleEndian.Uint64(b)
	count := int(binary.LittleEndian.Uint32(b[8:]))
	b = b[12:]
	if total > 1<<47 || count > len(b)/objectBytes {
		return "", 0, nil, 0, errHeader
	}
	return op, total, b[:objectBytes*count], fixed + l + objectBytes*count, nil
}

// keep collects every rank's bytes.
type keep struct{ parts [][]byte }

func (k *keep) expect(rank int, total uint64) error {
	k.parts[rank] = make([]byte, 0, total)
	return nil
}

func (k *keep) chunk(c *collective, rank, _ int, b []byte) bool {
	k.parts[rank] = append(k.parts[rank], b...)
	c.taken(rank, len(b))
	return true
}

func (k *keep) finish(c *collective) { k.parts[c.w.rank] = append([]byte{}, c.data...) }

// combine folds the ranks' data chunk by chunk, in the order of ranks, so that
// all ranks compute the same bits. dst is written when all is there: at an
// error it is as it was.
type combine struct {
	op      reduce.Op
	runs    []run
	dst     []byte
	scratch []byte   // the result so far, where it comes in several chunks
	chunks  [][]byte // by rank, those that wait for the others
}

func (m *combine) expect(int, uint64) error { return nil }

func (m *combine) chunk(c *collective, rank, off int, b []byte) bool {
	m.chunks[rank] = b
	for r := range m.chunks {
		if r != c.w.rank && (m.chunks[r] == nil || c.from[r].got != off) {
			return false
		}
	}
	m.chunks[c.w.rank] = c.data[off : off+len(b)]
	m.fold(off, len(b))
	for r := range m.chunks {
		m.chunks[r] = nil
		if r != c.w.rank {
			c.taken(r, len(b))
		}
	}
	return true
}

func (m *combine) fold(off, n int) {
	foldRuns(m.op, m.runs, off, m.scratch[off:off+n], m.chunks, nil)
}

func (m *combine) finish(*collective) {
	copy(m.dst, m.scratch)
}

// fill copies root's data. dst is written when all is there.
type fill struct {
	root         int
	dst, scratch []byte
}

func (f *fill) expect(rank int, total uint64) error {
	want := 0
	if rank == f.root {
		want = len(f.scratch)
	}
	if total != uint64(want) {
		return fmt.Errorf("%w: broadcast from rank %d: rank %d sends %d bytes, not %d", rdma.ErrCorrupt, f.root, rank, total, want)
	}
	return nil
}

func (f *fill) chunk(c *collective, rank, off int, b []byte) bool {
	copy(f.scratch[off:], b)
	c.taken(rank, len(b))
	return true
}

func (f *fill) finish(*collective) { copy(f.dst, f.scratch) }

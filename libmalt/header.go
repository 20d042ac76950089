package libmalt

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"malt/internal/say"
	"malt/rdma"
)

// The header of a collective: length of op, op, bytes of data, number of
// objects, and of each its id, clock and head; all little-endian.
const (
	headerFixed = 2 + 8 + 4
	objectBytes = 4 + 8 + 8
)

// A header names the objects that the rank has scattered, configured or closed since
// the last one: what a call costs does not grow with the objects that there are. The
// others keep where each rank was (Segment.told). So they read every header, also that
// of a call that was given up.

// standing is where a rank is with an object.
type standing struct {
	clock, head uint64 // head: allSeen once it has closed the object
}

// news is what a header says of one object.
type news struct {
	of *Segment
	standing
}

// changed is called after the clock or the head of s has: the others do not know.
func (s *Segment) changed() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if !s.untold {
		s.untold = true
		s.w.untold = append(s.w.untold, s)
	}
}

// news appends to list at most as many objects as the others are to be told of, and
// counts them as told. more: there are others.
func (w *World) news(list []news, most int) (_ []news, more bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := min(len(w.untold), most)
	for _, s := range w.untold[:n] {
		s.untold = false
		at := standing{s.clock.Load(), s.head.Load()}
		if s.gone.Load() {
			at.head = allSeen
		}
		list = append(list, news{s, at})
	}
	w.untold = append(w.untold[:0], w.untold[n:]...)
	return list, len(w.untold) > 0
}

// hear takes down what rank tells of s.
func (w *World) hear(rank int, s *Segment, at standing) {
	s.told[rank] = at
	w.touch(s)
}

// touch has the end of the present call, or of the next one that has an end, level s.
func (w *World) touch(s *Segment) {
	if !s.touched {
		s.touched = true
		w.touched = append(w.touched, s)
	}
}

// hearOwn is called when this rank has told list.
func (w *World) hearOwn(list []news) {
	for _, n := range list {
		w.hear(w.rank, n.of, n.standing)
	}
}

// untell is called when it has not, after all.
func (w *World) untell(list []news) {
	for _, n := range list {
		n.of.changed()
	}
}

// putHeader puts the header into b, or, if that cannot hold all that is new, a part of
// the news alone (more).
func (c *collective) putHeader(b []byte) (n int, more bool) {
	const most = chunkBytes - withHeader
	list, more := c.w.news(nil, c.room(most))
	c.w.hearOwn(list)
	if more {
		return len(appendNews(b[:0], list)), true
	}
	return len(c.appendHeader(b[:0], list)), false
}

// room is how many objects fit into a header of at most so many bytes.
func (c *collective) room(most int) int {
	return max(0, most-headerFixed-len(c.op)) / objectBytes
}

func (c *collective) appendHeader(h []byte, objects []news) []byte {
	h = binary.LittleEndian.AppendUint16(h, uint16(len(c.op)))
	h = append(h, c.op...)
	h = binary.LittleEndian.AppendUint64(h, uint64(len(c.data)))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(objects)))
	return appendNews(h, objects)
}

func appendNews(b []byte, objects []news) []byte {
	for _, o := range objects {
		b = binary.LittleEndian.AppendUint32(b, o.of.id)
		b = binary.LittleEndian.AppendUint64(b, o.clock)
		b = binary.LittleEndian.AppendUint64(b, o.head)
	}
	return b
}

var errHeader = say.Errorf(rdma.ErrCorrupt, "a collective call has a malformed header")

// An op is what all ranks must have alike in a collective call: the call as a program
// writes it, what it is given, and the number of the object, for names are not
// unique; with a tab between them.
func opOf(call, with string, of *Segment) string {
	if of != nil {
		with += fmt.Sprintf("\t%d", of.id)
	}
	return call + "\t" + with
}

// callOf is the call of an op, and whole the call with what it is given.
func callOf(op string) string { call, _, _ := strings.Cut(op, "\t"); return call }

func whole(op string) string {
	parts := strings.SplitN(op, "\t", 3)
	if len(parts) == 1 {
		return op
	}
	return parts[0] + "(" + parts[1] + ")"
}

// same is the error where rank is in another call, op.
func (c *collective) same(rank int, op string) error {
	if op == c.op {
		return nil
	}
	call := callOf(c.op)
	e := say.Errorf(ErrMismatch, "the ranks are in different collective calls").In(call).More("elsewhere").
		Try("All ranks must make the same collective calls in the same order. Is one of them under `if rank == 0`?")
	ours, theirs := whole(c.op), whole(op)
	switch {
	case ours == theirs:
		e.What = "the ranks make this call on different objects of one name"
		e.Do = "All ranks must make the same collective calls in the same order. Give each vector a name of its own."
	case callOf(op) == call:
		ours, theirs = apart(ours, theirs, len(call)+1)
		e.What = fmt.Sprintf("the ranks disagree about what %s is given", call)
		e.Do = "It must be alike on all ranks. Where a length comes from the data, agree first: n = malt.allreduce(n, \"max\")."
		e.Topic = "mismatch"
	}
	first, second := c.w.rank, rank
	if first > second {
		first, second, ours, theirs = second, first, theirs, ours
	}
	return e.At("%s\n%s", c.w.inPlace(first, ours), c.w.inPlace(second, theirs))
}

// apart cuts what two texts have in common behind their first n bytes, as far as they
// are too long for a line.
func apart(a, b string, n int) (string, string) {
	const most, before = 70, 20
	same := n
	for same < min(len(a), len(b)) && a[same] == b[same] {
		same++
	}
	if cut := same - before; max(len(a), len(b)) > most && cut > n {
		a, b = a[:n]+"…"+a[cut:], b[:n]+"…"+b[cut:]
	}
	return a, b
}

// getHeader reads rank's header; what is behind it in b is data.
func (c *collective) getHeader(rank int, b []byte) error {
	op, total, objects, n, err := parseHeader(b)
	if err != nil {
		return err
	}
	if err := c.same(rank, op); err != nil {
		return err
	}
	behind := uint64(0)
	if total <= withHeader {
		behind = total
	}
	if uint64(len(b)-n) != behind {
		return errHeader
	}
	c.w.hearAll(rank, objects)
	c.w.in[rank].read()
	c.from[rank].total = int(total)
	return c.sink.expect(rank, total)
}

// hearAll takes down what the objects of a header say.
func (w *World) hearAll(rank int, objects []byte) {
	open := w.open()
	for ; len(objects) > 0; objects = objects[objectBytes:] {
		id := binary.LittleEndian.Uint32(objects)
		i, there := slices.BinarySearchFunc(open, id, func(s *Segment, id uint32) int { return cmp.Compare(s.id, id) })
		if there { // else this rank has closed it, or given up its making
			w.hear(rank, open[i], standing{binary.LittleEndian.Uint64(objects[4:]), binary.LittleEndian.Uint64(objects[12:])})
		}
	}
}

// read notes that the header in the next message has been.
func (s *stream) read() { s.heard, s.part = s.next.Tag, s.next.Kind }

// kindNews is of a message that has news alone.
const kindNews = 1 << 14

// drop gives back a message of rank of which only the news are of use.
func (c *collective) drop(rank int) error {
	s := &c.w.in[rank]
	switch b := s.next.Data; {
	case s.next.Kind == kindNews && len(b)%objectBytes != 0:
		return errHeader
	case s.next.Kind == kindNews:
		c.w.hearAll(rank, b)
	case s.next.Kind != kindReason && (s.next.Tag != s.heard || s.next.Kind != s.part):
		_, _, objects, _, err := parseHeader(b)
		if err != nil {
			return err
		}
		c.w.hearAll(rank, objects)
		s.read()
	}
	s.release()
	return nil
}

// parseHeader checks every length before it uses it. n is where the data
// begins.
func parseHeader(b []byte) (op string, total uint64, objects []byte, n int, err error) {
	if len(b) < headerFixed {
		return "", 0, nil, 0, errHeader
	}
	l := int(binary.LittleEndian.Uint16(b))
	if len(b) < headerFixed+l {
		return "", 0, nil, 0, errHeader
	}
	op, b = string(b[2:2+l]), b[2+l:]
	total = binary.LittleEndian.Uint64(b)
	count := int(binary.LittleEndian.Uint32(b[8:]))
	b = b[12:]
	if total > 1<<47 || count > len(b)/objectBytes {
		return "", 0, nil, 0, errHeader
	}
	return op, total, b[:objectBytes*count], headerFixed + l + objectBytes*count, nil
}

// brief keeps what is compared between ranks, and shown where they differ, to a
// length that fits into a header.
func brief(text string) string {
	const most = 4096
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (sha256 %x)", text[:most/2], sha256.Sum256([]byte(text)))
}

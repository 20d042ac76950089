package core

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
// others keep where each rank was (Member.told). So they read every header, also that
// of a call that was given up.

// standing is where a rank is with an object.
type standing struct {
	clock, head uint64 // head: AllSeen once it has closed the object
}

// news is what a header says of one object.
type news struct {
	of *Member
	standing
}

// news appends to list at most as many objects as the others are to be told of, and
// counts them as told. more: there are others.
func (j *Job) news(list []news, most int) (_ []news, more bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	n := min(len(j.untold), most)
	for _, s := range j.untold[:n] {
		s.untold.Store(false) // before its news are read: see Changed
		at := standing{s.clock.Load(), s.Head.Load()}
		if s.gone.Load() {
			at.head = AllSeen
		}
		list = append(list, news{s, at})
	}
	j.untold = append(j.untold[:0], j.untold[n:]...)
	return list, len(j.untold) > 0
}

// hear takes down what rank tells of s.
func (j *Job) hear(rank int, s *Member, at standing) {
	s.told[rank] = at
	j.touch(s)
}

// touch has the end of the present call, or of the next one that has an end, level s.
func (j *Job) touch(s *Member) {
	if !s.touched {
		s.touched = true
		j.touched = append(j.touched, s)
	}
}

// hearOwn is called when this rank has told list.
func (j *Job) hearOwn(list []news) {
	for _, n := range list {
		j.hear(j.Rank, n.of, n.standing)
	}
}

// untell is called when it has not, after all.
func (j *Job) untell(list []news) {
	for _, n := range list {
		n.of.Changed()
	}
}

// putHeader puts the header into b, or, if that cannot hold all that is new, a part of
// the news alone (more).
func (c *Collective) putHeader(b []byte) (n int, more bool) {
	const most = ChunkBytes - withHeader
	list, more := c.Job.news(nil, c.room(most))
	c.Job.hearOwn(list)
	if more {
		return len(appendNews(b[:0], list)), true
	}
	return len(c.appendHeader(b[:0], list)), false
}

// room is how many objects fit into a header of at most so many bytes.
func (c *Collective) room(most int) int {
	return max(0, most-headerFixed-len(c.op)) / objectBytes
}

func (c *Collective) appendHeader(h []byte, objects []news) []byte {
	h = binary.LittleEndian.AppendUint16(h, uint16(len(c.op)))
	h = append(h, c.op...)
	h = binary.LittleEndian.AppendUint64(h, uint64(len(c.Data)))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(objects)))
	return appendNews(h, objects)
}

func appendNews(b []byte, objects []news) []byte {
	for _, o := range objects {
		b = binary.LittleEndian.AppendUint32(b, o.of.ID)
		b = binary.LittleEndian.AppendUint64(b, o.clock)
		b = binary.LittleEndian.AppendUint64(b, o.head)
	}
	return b
}

var errHeader = say.Errorf(rdma.ErrCorrupt, "a collective call has a malformed header")

// An op is what all ranks must have alike in a collective call: the call as a program
// writes it, what it is given, and the number of the object, for names are not
// unique; with a tab between them.
func OpOf(call, with string, of *Member) string {
	if of != nil {
		with += fmt.Sprintf("\t%d", of.ID)
	}
	return call + "\t" + with
}

// CallOf is the call of an op, and whole the call with what it is given.
func CallOf(op string) string { call, _, _ := strings.Cut(op, "\t"); return call }

func whole(op string) string {
	parts := strings.SplitN(op, "\t", 3)
	if len(parts) == 1 {
		return op
	}
	return parts[0] + "(" + parts[1] + ")"
}

// same is the error where rank is in another call, op.
func (c *Collective) same(rank int, op string) error {
	if op == c.op {
		return nil
	}
	call := CallOf(c.op)
	e := say.Errorf(ErrMismatch, "the ranks are in different collective calls").In(call).More("different-calls").
		Try("All ranks must make the same collective calls in the same order. Is one of them under `if rank == 0`?")
	ours, theirs := whole(c.op), whole(op)
	switch {
	case ours == theirs:
		e.What = "the ranks made this call on different objects with the same name"
		e.Do = "All ranks must make the same collective calls in the same order. Give each vector its own name."
	case CallOf(op) == call:
		e.Do = "Pass the same on all ranks."
		if strings.ContainsRune(ours, '[') { // it has a shape
			e.Do += " If a length comes from the data, agree on it first: n = malt.allreduce(n, \"max\")."
		}
		ours, theirs = Apart(c.op, op)
		e.What = fmt.Sprintf("the ranks passed different arguments to %s", call)
		e.Topic = "mismatch"
	}
	first, second := c.Job.Rank, rank
	if first > second {
		first, second, ours, theirs = second, first, theirs, ours
	}
	return e.At("%s\n%s", c.Job.Marks.InPlace(first, ours), c.Job.Marks.InPlace(second, theirs))
}

// Apart is two ops of one call as a program writes them, less what they have in common if they
// are too long for a line.
func Apart(a, b string) (string, string) {
	const most, before = 70, 20
	n := len(CallOf(a)) + 1
	a, b = whole(a), whole(b)
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
func (c *Collective) getHeader(rank int, b []byte) error {
	op, total, objects, n, err := parseHeader(b)
	if err != nil {
		return err
	}
	if err := c.same(rank, op); err != nil {
		return err
	}
	behind := uint64(0)
	if total <= uint64(c.Job.small) {
		behind = total
	}
	if uint64(len(b)-n) != behind {
		return errHeader
	}
	c.Job.hearAll(rank, objects)
	c.Job.in[rank].read()
	c.from[rank].total = int(total)
	return c.sink.Expect(rank, total)
}

// hearAll takes down what the objects of a header say.
func (j *Job) hearAll(rank int, objects []byte) {
	open := j.open()
	for ; len(objects) > 0; objects = objects[objectBytes:] {
		id := binary.LittleEndian.Uint32(objects)
		i, there := slices.BinarySearchFunc(open, id, func(s *Member, id uint32) int { return cmp.Compare(s.ID, id) })
		if there { // else this rank has closed it, or given up its making
			j.hear(rank, open[i], standing{binary.LittleEndian.Uint64(objects[4:]), binary.LittleEndian.Uint64(objects[12:])})
		}
	}
}

// read notes that the header in the next message has been.
func (s *stream) read() { s.heard, s.part, s.view = s.next.Tag, s.next.Kind, s.next.Age }

// kindNews is of a message that has news alone.
const kindNews = 1 << 14

// drop gives back a message of rank of which only the news are of use.
func (c *Collective) drop(rank int) error {
	s := &c.Job.in[rank]
	switch b := s.next.Data; {
	case s.next.Kind == kindNews && len(b)%objectBytes != 0:
		return errHeader
	case s.next.Kind == kindNews:
		c.Job.hearAll(rank, b)
	case s.next.Kind != kindReason && (s.next.Tag != s.heard || s.next.Kind != s.part || s.next.Age != s.view):
		_, _, objects, _, err := parseHeader(b)
		if err != nil {
			return err
		}
		c.Job.hearAll(rank, objects)
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

// Brief keeps what is compared between ranks, and shown where they differ, to a
// length that fits into a header.
func Brief(text string) string {
	const most = 4096
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (sha256 %x)", text[:most/2], sha256.Sum256([]byte(text)))
}

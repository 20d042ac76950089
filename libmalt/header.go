package libmalt

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"strings"

	"malt/internal/say"
	"malt/libmalt/consistency"
	"malt/rdma"
)

// The header of a collective: length of op, op, bytes of data, number of
// objects, and of each its id, clock and head; all little-endian.
const (
	headerFixed = 2 + 8 + 4
	objectBytes = 4 + 8 + 8
)

// standing is where a rank is with one object.
type standing struct {
	id          uint32
	clock, head uint64
	queue       bool
}

// standings appends where this rank is to list.
func (w *World) standings(list []standing) []standing {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.objects {
		list = append(list, standing{s.id, s.clock.Load(), s.head.Load(), s.mode.consistency.Kind == consistency.NotifyAck})
	}
	return list
}

// objects lists where this rank is, and counts that for the levels.
func (c *collective) objects() []standing {
	list := c.w.standings(nil)
	for _, o := range list {
		c.add(c.w.rank, o.id, o.clock, o.head)
	}
	return list
}

func (c *collective) putHeader(b []byte) (int, error) {
	objects := c.objects()
	h := c.appendHeader(b[:0], objects, chunkBytes-withHeader)
	if h == nil {
		return 0, say.Errorf(ErrState, "%s: %d vectors and segments are open, which is too many", callOf(c.op), len(objects)).In(callOf(c.op)).Try("Close some.")
	}
	return len(h), nil
}

// appendHeader appends the header; nil: it takes more than most bytes.
func (c *collective) appendHeader(h []byte, objects []standing, most int) []byte {
	if headerFixed+len(c.op)+objectBytes*len(objects) > most {
		return nil
	}
	h = binary.LittleEndian.AppendUint16(h, uint16(len(c.op)))
	h = append(h, c.op...)
	h = binary.LittleEndian.AppendUint64(h, uint64(len(c.data)))
	h = binary.LittleEndian.AppendUint32(h, uint32(len(objects)))
	for _, o := range objects {
		h = binary.LittleEndian.AppendUint32(h, o.id)
		h = binary.LittleEndian.AppendUint64(h, o.clock)
		h = binary.LittleEndian.AppendUint64(h, o.head)
	}
	return h
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
	c.addAll(rank, objects)
	c.from[rank].total = int(total)
	return c.sink.expect(rank, total)
}

// addAll counts the objects of a header for the levels.
func (c *collective) addAll(rank int, objects []byte) {
	for ; len(objects) > 0; objects = objects[objectBytes:] {
		id := binary.LittleEndian.Uint32(objects)
		c.add(rank, id, binary.LittleEndian.Uint64(objects[4:]), binary.LittleEndian.Uint64(objects[12:]))
	}
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

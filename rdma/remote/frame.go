package remote

import (
	"encoding/binary"
	"math"

	"malt/internal/say"
	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/vote"
)

// A frame is a header of 16 bytes, little-endian, and a body; docs/developers/wire.md has
// the table.
//
//	0 kind 1   flags 1   zero 2   length of the body 4
//	8 id 4     arg 4
const frameBytes = 16

type kind uint8

const (
	_         kind = iota
	announce       // id is a box of the sender of the frame, for the receiver
	subscribe      // id is a box of the receiver of the frame, as in ack and done
	resume         // all boxes that the sender of the frame reads are subscribed to again
	data           // an update of box id, or its beginning
	more           // the next part of the update of box id that is under way
	clock          // how far box id is, without an update
	ack            // everything up to a seq was released
	skip           // the reader has released box id up to a seq: its demand of that number is met
	closed         // box id was closed; nothing comes behind it
	done           // the receiver of the frame can forget its box id
	makeWords      // id is words of the sender of the frame
	dropWords      // they were given up before they came about
	setWords       // new values, from index arg on
	doneWords      // the receiver of the frame can forget its words id
	left           // the rank has left in good order; nothing comes behind it; arg is its Farewell (Members)
	aborted        // the rank is as good as dead; id and arg are the rank and the kind of death that it is because of, its own or another's, with the rank that that one does not reach; the body says why
	ask            // id is words of the sender of the frame: has what was set so far landed? the body numbers the question
	heard          // id is words of the receiver of the frame: it has
	dead           // the sender of the frame has found rank id dead; arg is the kind of death; the body says how

	beat   = kind(vote.Last) + 1 // nothing, for the peer's kernel to acknowledge, or by arg for its process; between dead and it are the kinds of package vote
	greets = beat + 1            // the card of the sender of the frame, and the room for a probe
	grants = greets + 1          // a room for the next update of box id
	after  = grants + 1          // so many records were posted before
	credit = after + 1           // so many have landed
	kinds  = credit + 1          // how many there are
)

const (
	flagLast     = 1 << iota // the update is complete
	flagEmpty                // it was not meant for this reader, or is not any more
	flagLockstep             // of the announced box
	flagQuiet                // nobody need be woken
	flagPartial              // of the announced box
	flagPlaced               // the payload is in a room; of an announced box: it can be
)

const (
	chunk = 256 << 10 // most payload in a frame
	// An update's body begins with its box.Header and how far its box is.
	headBytes = 64
	preamble  = headBytes + 16
	maxName   = 16 << 10
	maxBody   = preamble + chunk
	inRoom    = 8              // of an update in a room: its number
	maxOther  = 20 + 2*maxName // of a frame without payload
	maxWords  = 1 << 12        // of one name and rank
	mostKept  = 64 << 20       // bytes of what a peer has announced
	setBatch  = 1024           // words in a frame

	apartShift = 8 // of the arg of an aborted: above it is 1 + the rank that the dead one does not reach, or 0
	excused    = 1 // arg of an ack: of what the reader was excused from; the body numbers the demand
	asks       = 1 // arg of a beat: the peer is to answer, with
	answers    = 2
)

type header struct {
	kind   kind
	flags  uint8
	length uint32
	id     uint32
	arg    uint32
}

func (h *header) append(b []byte) []byte {
	b = append(b, byte(h.kind), h.flags, 0, 0)
	b = binary.LittleEndian.AppendUint32(b, h.length)
	b = binary.LittleEndian.AppendUint32(b, h.id)
	return binary.LittleEndian.AppendUint32(b, h.arg)
}

// limit of the body, and the flags that may be set.
type limit struct {
	least, most uint32
	flags       uint8
}

// limitOf a kind of frame.
func limitOf(k kind) limit {
	if k.votes() {
		least, most := vote.Limits(vote.Kind(k))
		return limit{least, most, 0}
	}
	return limits[k]
}

// limits by kind, but for those of votes.
var limits = [kinds]limit{
	announce:  {20, 20 + 2*maxName, flagLockstep | flagPartial | flagPlaced},
	subscribe: {16, 16, 0},
	resume:    {0, 0, 0},
	data:      {preamble, maxBody, flagLast | flagEmpty | flagPlaced},
	more:      {0, chunk, flagLast | flagEmpty},
	clock:     {16, 16, 0},
	ack:       {8, 8, 0},
	skip:      {24, 24, 0},
	closed:    {16, 16, 0},
	done:      {0, 0, 0},
	makeWords: {0, maxName, 0},
	dropWords: {0, 0, 0},
	setWords:  {8, 8 * setBatch, flagQuiet},
	doneWords: {0, 0, 0},
	left:      {0, 0, 0},
	aborted:   {0, maxName, 0},
	ask:       {8, 8, 0},
	heard:     {8, 8, 0},
	dead:      {0, maxName, 0},
	beat:      {0, 0, 0},
	greets:    {24, 1 << 10, 0},
	grants:    {48, 48, 0},
	after:     {8, 8, 0},
	credit:    {8, 8, 0},
}

// decodeHeader checks everything that can be known without the box.
func decodeHeader(b []byte) (header, error) {
	h := header{
		kind: kind(b[0]), flags: b[1],
		length: binary.LittleEndian.Uint32(b[4:]),
		id:     binary.LittleEndian.Uint32(b[8:]),
		arg:    binary.LittleEndian.Uint32(b[12:]),
	}
	if h.kind == 0 || h.kind >= kinds || b[2] != 0 || b[3] != 0 {
		return h, malformed("a frame begins with % x", b[:4])
	}
	switch l := limitOf(h.kind); {
	case h.length < l.least || h.length > l.most:
		return h, malformed("a frame of kind %d with %d bytes; expected %d to %d", h.kind, h.length, l.least, l.most)
	case h.flags&^l.flags != 0:
		return h, malformed("a frame of kind %d with flags %#x; expected some of %#x", h.kind, h.flags, l.flags)
	case h.kind.votes() && h.id != 0:
		return h, malformed("a vote of kind %d with id %d; expected 0", h.kind, h.id)
	}
	return h, nil
}

// malformed says that what an authenticated peer sent cannot be.
func malformed(format string, args ...any) error {
	return say.Errorf(rdma.ErrCorrupt, "corrupt message: "+format, args...)
}

func appendFrame(b []byte, k kind, flags uint8, id, arg uint32, body ...uint64) []byte {
	h := header{k, flags, uint32(8 * len(body)), id, arg}
	b = h.append(b)
	for _, v := range body {
		b = binary.LittleEndian.AppendUint64(b, v)
	}
	return b
}

func number(b []byte, i int) uint64 { return binary.LittleEndian.Uint64(b[8*i:]) }

// appendAnnounce says what box id is.
func appendAnnounce(b []byte, id uint32, name string, s rdma.Spec, placed bool) []byte {
	h := header{kind: announce, id: id, length: uint32(20 + len(name) + len(s.About))}
	if s.Mode == rdma.ByClock {
		h.flags |= flagLockstep
	}
	if s.Partial {
		h.flags |= flagPartial
	}
	if placed {
		h.flags |= flagPlaced
	}
	b = h.append(b)
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Bytes))
	b = binary.LittleEndian.AppendUint64(b, uint64(s.Mode.Depth()))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(name)))
	return append(append(b, name...), s.About...)
}

func decodeAnnounce(h header, b []byte) (name string, s rdma.Spec, err error) {
	bytes, depth, n := number(b, 0), number(b, 1), binary.LittleEndian.Uint32(b[16:])
	if bytes > math.MaxInt || depth > box.MaxSlots || int(n) > len(b)-20 || n > maxName || len(b)-20-int(n) > maxName {
		return "", s, malformed("a box of %d bytes, depth %d, with a name of %d bytes", bytes, depth, n)
	}
	s = rdma.Spec{Bytes: int(bytes), Partial: h.flags&flagPartial != 0, About: string(b[20+n:])}
	switch lockstep := h.flags&flagLockstep != 0; {
	case lockstep && depth > 0:
		return "", s, malformed("a queue of depth %d in lock-step", depth)
	case lockstep:
		s.Mode = rdma.ByClock
	case depth > 0:
		s.Mode = rdma.Queue(int(depth))
	}
	if _, err := box.NewLayout(s, 1); err != nil {
		return "", s, malformed("%v", err)
	}
	return string(b[20 : 20+n]), s, nil
}

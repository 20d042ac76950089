package box

import "malt/rdma/internal/mem"

// Offsets within the control block.
const (
	offMagic      = 0
	offDigest     = 8
	offReadersN   = 16
	offSlots      = 24
	offBytes      = 32
	offDepth      = 40
	offMember     = 48 // generation<<32 | member
	offSenderRank = 56

	offClock      = 64
	offLeft       = 72
	offHead       = 80
	offSenderBell = 88
	offView       = 96

	offReaders  = 128 // then one record per reader
	readerBytes = 128

	// Within a reader's record. Sender and reader write a cache line each.
	offLatest     = 0 // two words
	offPublished  = 16
	offFirst      = 24
	offLast       = 32
	offPin        = 64
	offAck        = 72
	offReaderBell = 80
	offBegun      = 88
)

const (
	controlMagic = 0x31584f42544c414d // "MALTBOX1"
	released     = ^uint64(0)         // ack of a reader that has closed its end
)

// control is a control block. Each method names one word, who writes it, what
// orders it, and what is left when its writer stops or dies right there. A
// writer that is stopped is just slow: in newest mode nobody waits for it.
type control []byte

// clock is how far the sender is. Written by the sender after latest or head,
// so that who sees the clock sees the update. Dies before it: readers may have
// an update newer than the clock; its final value is what it is.
func (c control) clock() *mem.Word { return mem.WordAt(c, offClock) }

// left is 1 + the sender's final seq once it has closed its end. Written by the
// sender after everything else. Dies before it: it is dead, not left.
func (c control) left() *mem.Word { return mem.WordAt(c, offLeft) }

// head is the seq of the newest update, in queue mode. Written by the sender
// after the slot and its mask. Dies before it: the update was never sent.
func (c control) head() *mem.Word { return mem.WordAt(c, offHead) }

// senderBell is the doorbell that ackers ring. Written before the box is
// announced, never again.
func (c control) senderBell() *mem.Word { return mem.WordAt(c, offSenderBell) }

// view is the generation of the view in which the sender is, of a queue with edges
// (edges.go). Written by the sender after last. Dies before it: it is dead, and its last
// update is the one in head.
func (c control) view() *mem.Word { return mem.WordAt(c, offView) }

// first and last are the updates with which the newest edge to reader r began and ended; it
// has not ended where last is less. Written by the sender: first before head of that update,
// last before view. Dies after first: it has not sent the update.
func (c control) first(r int) *mem.Word {
	return mem.WordAt(c, offReaders+r*readerBytes+offFirst)
}

func (c control) last(r int) *mem.Word {
	return mem.WordAt(c, offReaders+r*readerBytes+offLast)
}

// begun is generation<<48 | seq: in the view of which generation reader r reads, and which
// updates are behind it. Written by r when it goes over to the view. Dies after it: the
// sender does not wait for a dead reader.
func (c control) begun(r int) *mem.Word {
	return mem.WordAt(c, offReaders+r*readerBytes+offBegun)
}

// latest is seq<<16 | slot of the newest update for reader r (in lock-step: of
// that parity of the clock). Written by the sender after the slot was filled.
// Dies before it: the update was never sent to r, whatever others got.
func (c control) latest(r, parity int) *mem.Word {
	return mem.WordAt(c, offReaders+r*readerBytes+offLatest+8*parity)
}

// published counts the updates meant for reader r. Written by the sender before
// latest or head, so that it is never less than what r has got. Dies after it:
// one too many.
func (c control) published(r int) *mem.Word {
	return mem.WordAt(c, offReaders+r*readerBytes+offPublished)
}

// pin is 1 + the slot that reader r is reading, in newest mode. Written by r;
// the sender's look at it is ordered by the fences of newest.go. Dies with it
// set: the slot is lost, one more was reserved for that.
func (c control) pin(r int) *mem.Word {
	return mem.WordAt(c, offReaders+r*readerBytes+offPin)
}

// ack is the seq up to which reader r has released everything. Written by r
// after its last read of those slots. Dies before it: the sender leaves a dead
// reader out.
func (c control) ack(r int) *mem.Word {
	return mem.WordAt(c, offReaders+r*readerBytes+offAck)
}

// readerBell is the doorbell of reader r, 0 until it attaches. Written by r
// before its first look at latest, head, clock or left: with the exchange there
// and the sender's before it rings, either r sees the update or the sender sees
// the bell.
func (c control) readerBell(r int) *mem.Word {
	return mem.WordAt(c, offReaders+r*readerBytes+offReaderBell)
}

// mask is word i of the bits of the readers that the update in slot is not
// meant for, in queue mode. Written by the sender before head.
func (c control) mask(l *Layout, slot, i int) *mem.Word {
	return mem.WordAt(c, offReaders+l.Readers*readerBytes+8*(slot*l.maskWords()+i))
}

// description is the first line of the control block, offset by offset.
func (l *Layout) description(sender int, id uint64) [8]struct {
	off  int
	v    uint64
	what string
} {
	return [8]struct {
		off  int
		v    uint64
		what string
	}{
		{offDigest, l.digest, "digest of the spec"},
		{offReadersN, uint64(l.Readers), "readers"},
		{offSlots, uint64(l.Slots), "slots"},
		{offBytes, uint64(l.Spec.Bytes), "bytes"},
		{offDepth, uint64(l.Spec.Mode.Depth()), "depth"},
		{offMember, id, "generation and member"},
		{offSenderRank, uint64(sender), "rank of the sender"},
		{offMagic, controlMagic, "magic"}, // last: it says that the rest is there
	}
}

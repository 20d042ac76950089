package rdma

import "context"

// Transport is one rank's access to the memory of the others. Ranks are dense,
// 0 … Size()-1. Only Publish, Subscribe, Words, Shared.Join and Wait may
// block, and each of them returns ctx.Err() (wrapped, naming the ranks it
// waited for) when ctx is done.
//
// A Transport may be used by several goroutines; an Outbox or Inbox by one at a
// time, but for the exceptions named there.
type Transport interface {
	// Name is the transport's key in the option grammar: "shm", "tcp", …
	Name() string
	Rank() int
	Size() int
	// Near is the ranks whose memory this rank can map, ascending, itself among
	// them: those of its host. The ranks near one of them are the same ones. The
	// caller leaves the slice as it is.
	Near() []int

	// Map returns zeroed, page-aligned memory outside the Go heap, private to
	// this process (a forked child gets a copy). It fails with ErrNoMemory, and
	// reserves nothing, where the machine or the control group could not back
	// it. The memory outlives Close; Unmap gives it back.
	Map(bytes int) ([]byte, error)
	Unmap(b []byte) error

	// Publish makes a box whose every update is for some or all of readers, and
	// announces it under name. Readers are other ranks, each named once, as are
	// senders: a box to oneself is refused. It does not wait for the readers. The
	// name is free again when the box is closed.
	Publish(ctx context.Context, name string, s Spec, readers []int) (Outbox, error)
	// Subscribe waits until every sender has published name with this rank among
	// its readers. It fails with *MismatchError where a sender's Spec differs,
	// and with *PeerError or ErrLeft where a sender is gone. A box that its sender
	// has closed, or that this rank has had already, does not count: it waits for
	// the next of that name. What fails has taken nothing.
	Subscribe(ctx context.Context, name string, s Spec, senders []int) ([]Inbox, error)

	// Words makes n 64-bit words per rank that all ranks can read, zero at
	// first. Collective: it waits until all ranks have made them.
	Words(ctx context.Context, name string, n int) (Words, error)
	// Share makes this rank's part of memory that the near ranks read and write,
	// one block and some words for each, zero at first, and announces it under
	// name. It does not wait for the others: Shared.Join does. The same name is
	// another memory elsewhere.
	Share(name string, bytes, words int) (Shared, error)

	// Wait runs step until it returns true: once at once, and again each time
	// this rank's doorbell has been rung. step may do work; it must not block.
	// The caller's goroutine runs it. Several goroutines may wait at once. A ctx
	// that is a Sleeper does the sleeping.
	Wait(ctx context.Context, step func() bool) error
	// Wake rings this rank's own doorbell: cancel, hand over, stop.
	Wake()
	// Sub returns the same rank with a doorbell of its own, for a goroutine that
	// makes progress beside the caller's. Boxes made through it ring that one.
	// Closing it leaves the parent open.
	Sub() (Transport, error)

	// State tells whether peer takes part: nil while it lives, ErrLeft when it
	// has closed its transport in good order, *PeerError when it is dead: of the
	// rank that died first, where peer ended because of that. Both are final.
	State(peer int) error
	// Abort publishes this rank's own death: every wait of the others for it fails
	// with why, which is HasFailed, or the death of another rank.
	Abort(why *PeerError)

	// Traffic counts exactly what went to and came from peer.
	Traffic(peer int) Traffic

	// Close leaves in good order: everything published so far can still be read
	// by those who have mapped it. Boxes and words still open are closed.
	Close() error
}

// Sleeper is the context of a caller that has to look up from its sleep now and
// then, or can sleep cheaper: Wait has it sleep on the calling goroutine.
type Sleeper interface {
	context.Context
	// Sleep sleeps until a futex call wakes who sleeps on word. It also returns
	// when word, which others store to, is found to differ from seen, when the
	// context is done, or for no reason: the caller looks again whatever the reason.
	// The memory of word stays until it has returned.
	Sleep(word *uint32, seen uint32)
}

// Mode is what a box keeps of what its sender commits: Newest, ByClock, or Queue of a depth.
type Mode int

const (
	Newest  Mode = 0  // the newest update, which overwrites older ones
	ByClock Mode = -1 // the two newest for each reader, for readers in lock-step
	noMode  Mode = -2
)

// Queue keeps every update until its readers have released it, at most depth of them.
func Queue(depth int) Mode {
	if depth < 1 {
		return noMode
	}
	return Mode(depth)
}

// Depth is that of a queue, 0 of other modes.
func (m Mode) Depth() int { return max(0, int(m)) }

// Spec is what both ends of a box must agree on.
type Spec struct {
	Bytes int // largest payload
	Mode  Mode
	About string // anything else that both ends must agree on, for comparison and messages
	// Partial: most payloads will be much shorter than Bytes. Begin then makes no
	// room, so that a slot takes no more memory than what was written into it.
	// The two ends need not agree on it.
	Partial bool
}

// Stamp belongs to the layer above; a box only carries it.
type Stamp struct {
	Clock  uint64  // the sender's scatter count
	Age    uint64  // oldest contribution inside, for layers that combine
	Tag    uint64  // element offset, shard cursor, collective number
	Kind   uint16  // what the payload is, to the layer above
	Weight float64 // weight of the payload in a mean
}

// Update is one received payload.
type Update struct {
	Stamp
	Seq  uint64 // the box's own count of commits, from 1
	Data []byte // read-only, zero-copy; valid until released or replaced by the next; nil in queue mode where the update was not meant for this reader
}

// Outbox is the sending end of a box. One goroutine at a time.
type Outbox interface {
	// Begin returns the memory of the next slot, the same until Commit. What was
	// written there can still be read after Commit, until the next Begin. In
	// newest mode it never waits for a reader. In queue mode it returns nil, nil
	// while a reader has yet to release the update that the slot still holds.
	// It fails with ErrNoMemory when a slot that was never used cannot be backed.
	Begin() ([]byte, error)
	// Reserve makes sure that the first n bytes of what Begin has returned are
	// there, which only has to be asked for with Spec.Partial, before they are
	// written. It fails with ErrNoMemory; the slot stays begun.
	Reserve(n int) error
	// Commit publishes the first n bytes of the slot to the readers in to, nil
	// meaning all. In queue mode the others get an update whose Data is nil.
	Commit(n int, s Stamp, to []int) error
	// Advance raises the clock word that readers see, without a message.
	Advance(clock uint64) error
	// Acked is the last Seq that reader has released, in both modes; the largest
	// uint64 once it has closed its end. In newest mode a release rings nobody.
	Acked(reader int) uint64
	// Excuse treats everything committed so far as released by reader, so that
	// Begin in queue mode does not wait for it. The caller knows that reader is
	// not reading, and will call Return before it does again. Where that call has
	// come before this one, nothing happens: Begin still has nothing, and the
	// caller looks again whether the reader is away.
	Excuse(reader int)
	// Close leaves the box: what was committed can still be read, and Clock tells
	// the readers ErrLeft.
	Close() error
}

// Inbox is the receiving end of a box. One goroutine at a time, but for
// Release in queue mode.
type Inbox interface {
	From() int
	// Next returns the newest update that was not returned before, or in queue
	// mode the one after the last returned. ok is false when there is none; what
	// was returned last then stays valid. A slot whose header does not fit
	// (magic, sender, length) is ErrCorrupt, never a wrong update.
	Next() (u Update, ok bool, err error)
	// At returns the newest update of at most that clock (ByClock only), also when it is
	// asked again; ok is false when there is none for this reader. The update
	// that was returned before is no longer valid.
	At(clock uint64) (u Update, ok bool, err error)
	// Release gives back all updates up to seq, and skips those among them that
	// were not returned; the largest uint64 stands for all that there are. In
	// queue mode another goroutine may call it.
	Release(seq uint64)
	// Return says that this reader of a queue reads again: the sender, which may
	// have excused it, is to wait for it from now on. What was returned last, and
	// what may have been overwritten, counts as released.
	Return()
	// Returned tells whether the sender knows of the last Return. Where not, Next
	// has nothing, and this rank's doorbell is rung once it does.
	Returned() bool
	// Clock is how far the sender is, whether or not it sent to this reader.
	// With ErrLeft or *PeerError the value is final, and everything that was
	// published up to it can still be had from Next. So who waits for an update
	// asks Clock first and Next then: when Clock gave an error and Next has
	// nothing, nothing will come.
	Clock() (uint64, error)
	// Published counts the updates that were meant for this reader.
	Published() uint64
	Close() error
}

// Words are small values per rank that all ranks read: barrier epochs, marks.
type Words interface {
	// Set stores v in this rank's word i and rings every rank's doorbell.
	Set(i int, v uint64)
	// Put stores v in this rank's word i and rings nobody: for what others look
	// at only when they happen to be awake.
	Put(i int, v uint64)
	// Get loads word i of rank. With ErrLeft or *PeerError the value is final.
	Get(rank, i int) (uint64, error)
	// Peek is Get without a look at who takes part, for a caller that keeps Close away.
	Peek(rank, i int) uint64
	// Heard tells whether rank can read everything that this rank has Set so far,
	// or takes part no longer. Where not, this rank's doorbell is rung once it can.
	Heard(rank int) bool
	Close() error
}

// Shared is memory that the ranks near each other read and write, with words to
// agree on who does when. It knows nothing of ranks that are not near.
type Shared interface {
	// Join waits until all near ranks have made theirs and maps it; one that the job goes
	// on without (Viewed) may be missing: it has no Bytes, and its words are 0. It fails with
	// *MismatchError where a rank's differs, and as Subscribe does where one is
	// gone; then it has taken nothing and can be called again.
	Join(ctx context.Context) error
	// Bytes is the block of rank. This rank's own is there before Join and
	// outlives Close: Unmap of the Transport gives it back. Nothing but the words
	// orders what ranks do to the blocks. What a forked child writes into it stays
	// its own.
	Bytes(rank int) []byte
	// Get loads word i of rank. It and the next four methods are for after Join, and as the
	// bytes of other ranks not for after Close; they say nothing of who takes part.
	Get(rank, i int) uint64
	// Put stores v in this rank's word i. Set does so before anything that this rank loads
	// afterwards.
	Put(i int, v uint64)
	Set(i int, v uint64)
	// Swap stores v in word i of rank if the word is old; it tells whether it was.
	Swap(rank, i int, old, v uint64) bool
	// Ring rings the doorbells of all near ranks, for what was stored by Set or Swap.
	Ring()
	// Close: a rank that has not joined when another one closes waits for the next of that
	// name.
	Close() error
}

// Counted is a Transport that counts what changes in the answers of State: while Changes is
// the same, so are they. 0: they may have changed. Not for after Close.
type Counted interface{ Changes() uint64 }

// Cored is a Transport that knows how many cores its near ranks have, all together.
type Cored interface{ Cores() int }

// Traffic counts one peer's messages and payload bytes. Only updates that were
// meant for the peer count: as sent when they are published to it, as received
// when the reader gets them. One that was overwritten unseen was never received.
type Traffic struct {
	SentMessages, SentBytes         uint64
	ReceivedMessages, ReceivedBytes uint64
	// What went over a network for it and for everything else: headers, words,
	// acks. What was overwritten before it could be sent did not. 0 without one.
	SentWire, ReceivedWire uint64
	// Payload that a network card has written into its place (RDMA); it is not in ...Wire.
	SentPlaced, ReceivedPlaced uint64
	// RDMA is 0 of a rank that shares memory with this one, 1 if payload was written so, 2 if none was yet,
	// and else a fabric.Why.
	RDMA int32
}

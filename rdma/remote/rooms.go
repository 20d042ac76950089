package remote

import (
	"errors"
	"sync"

	"malt/rdma/box"
)

// A room is registered memory in a slot of a replica, in which the owner of the box may put the payload
// of one update without a word to this process. At most one room of a box is out, for the update that
// comes next, and every update uses it up, whichever way its payload comes:
//
//	none -offer-> out -begin, placed: the number has arrived-> none
//	              out -begin, by TCP-> none
//	              out -void: the connection or the box has ended-> none
//
// So both ends know from the order of frames which room there is: the owner drops one that was offered
// before its last update had landed.
type room struct {
	number  uint32 // arrives behind the last byte of the payload; 0: this is no room
	slot    int    // at the reader
	landed  uint64 // seq of the update that had landed last
	seq     uint64 // of the update that it is for, in a queue; 0: of any
	bytes   uint64
	address uint64
	key     uint64
}

// rooms is the reader's side. The goroutine that sends offers, the one that lands begins and commits.
type rooms struct {
	lock sync.Locker // guards the rest, and box but for words of the control block
	box  *box.Replica
	out  room
	busy bool // an update has begun
}

var errNumbers = errors.New("as many rooms are out as the card can tell of")

// offer takes a slot for the next update as the room of a new number; none where there is one, or no slot.
func (r *rooms) offer(number func() uint32) (offered room, err error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.busy || r.out.number != 0 {
		return room{}, nil
	}
	slot, seq, ok, err := r.box.Room()
	if !ok || err != nil {
		return room{}, err
	}
	n := number()
	if n == 0 {
		return room{}, errNumbers
	}
	r.out = room{number: n, slot: slot, landed: r.box.Landed(), seq: seq}
	return r.out, nil
}

// begin is box.Replica.Begin for an update of which the payload is in the room of that number, or 0. Used
// is the room that it has used up.
func (r *rooms) begin(h *box.Header, number uint32) (payload []byte, used room, err error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	at := box.Anywhere
	used, r.out = r.out, room{}
	if number != 0 {
		if number != used.number || used.seq != 0 && used.seq != h.Seq {
			return nil, used, malformed("seq %d is in room %d; expected room %d, of seq %d (0: of any)", h.Seq, number, used.number, used.seq)
		}
		at = used.slot
	}
	payload, err = r.box.Begin(h, at)
	r.busy = err == nil
	return payload, used, err
}

// commit publishes what has begun.
func (r *rooms) commit(h *box.Header, mine bool, at box.Progress) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.box.Commit(h, mine, at)
	r.busy = false
}

// advance is how far the owner is, without an update; left: this is all.
func (r *rooms) advance(at box.Progress, left bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	if left {
		r.box.Leave(at)
	} else {
		r.box.Advance(at)
	}
}

// drop ends an update that does not come.
func (r *rooms) drop() {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.busy = false
}

// void takes back the room that is out. Where its owner may still write, other memory comes in its place.
func (r *rooms) void(written func(slot int)) (was room) {
	r.lock.Lock()
	defer r.lock.Unlock()
	was, r.out = r.out, room{}
	if was.number != 0 && written != nil {
		written(was.slot)
		r.box.Renew(was.slot)
	}
	return was
}

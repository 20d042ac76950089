package rendezvous

import (
	"errors"
	"fmt"
	"math"

	"malt/rdma"
	"malt/rdma/internal/mem"
)

// Bells is how many doorbells each rank has: one for its own calls, and one for
// each of up to seven goroutines that make progress beside them.
const Bells = 8

// MaxSize is the largest number of ranks on one machine.
const MaxSize = 4096

// The control page: one per job and machine, mapped for reading and writing by
// every rank. Fresh memory is zero, and zero is "none" everywhere.
//
//	   0 +----------------------------------------------------------+
//	     | magic   version and size                                 | the first member, before it hands the page out
//	  64 +----------------------------------------------------------+
//	     | view: who takes part (view.go)   vote (votes.go)         | the first member, before it hands the page out
//	     | changes of states   again (again.go)   out (ballots.go)  | +16
//	 128 +----------------------------------------------------------+ member 0
//	     | pid   start time   state   back: try, pid, start time    | +0
//	     | here: the try                                            | +48
//	     | claim   (room for heartbeat and step)                    | +64
//	     | doorbells 0 … 7, a line each                             | +128
//	     | why it aborts: rank and kind, length and text            | +640
//	     | two sets of ranks that it has proposed                   | +2048
//	     | the hosts that belong to them                            | +3072
//	     | two records of what its host has accepted (votes.go)     | +4096
//	6400 +----------------------------------------------------------+ member 1
//	     | …                                                        |
type page []byte

const (
	pageMagic   = 0x313045474150_4d // "MPAGE01"
	pageVersion = 7

	offMagic   = 0
	offSize    = 8
	offView    = 64
	offVote    = 72
	offChanges = 80
	offAgain   = 88
	offOut     = 96
	offMembers = 128
	perMember  = 6272

	// Within a member's record. What all look at often, what its owner writes
	// often, and each doorbell have a cache line of their own.
	offPid    = 0
	offStart  = 8
	offState  = 16
	offBack   = 24 // three words
	offHere   = 48
	offClaim  = 64
	offBell   = 128
	offReason = offBell + Bells*64
	maxReason = offSets - offReason - 16
	offSets   = 2048
	setBytes  = MaxSize / 8

	offElectors = offSets + 2*setBytes
	offRecords  = offElectors + 2*setBytes
	recordBytes = 64 + 2*setBytes
)

// States of a member, in the order in which they may follow each other. left,
// dead and aborted are final.
const (
	absent  = iota // has not arrived
	joining        // has arrived: its pid, start time and socket are there
	alive          // has seen that all have arrived
	left           // has left in good order
	dead           // the kernel says that its process has ended
	aborted        // says of itself that it is as good as dead; see reason
)

// pageBytes is the size of the page for size ranks.
func pageBytes(size int) int { return offMembers + size*perMember }

// format makes a fresh page one for size ranks.
func (p page) format(size int, try uint64) {
	p.view().Store(firstView)
	p.changes().Store(1)
	p.again().Store(try << againBits)
	mem.WordAt(p, offSize).Store(pageVersion<<32 | uint64(size))
	mem.WordAt(p, offMagic).Store(pageMagic)
}

// check fails unless p is a page of this version for size ranks.
func (p page) check(size int) error {
	if m := mem.WordAt(p, offMagic).Load(); m != pageMagic {
		return fmt.Errorf("control page with magic %#x, expected %#x", m, uint64(pageMagic))
	}
	if v := mem.WordAt(p, offSize).Load(); v != pageVersion<<32|uint64(size) {
		return fmt.Errorf("control page of version %d for %d ranks, expected version %d for %d",
			v>>32, uint32(v), pageVersion, size)
	}
	return nil
}

func (p page) member(rank, off int) *mem.Word {
	return mem.WordAt(p, offMembers+rank*perMember+off)
}

// pid and start name the process that is this rank. Written by it before its
// state is joining, never again. Dies before that: it never arrived.
func (p page) pid(rank int) *mem.Word   { return p.member(rank, offPid) }
func (p page) start(rank int) *mem.Word { return p.member(rank, offStart) }

// state goes up only, by compare-and-swap. The rank itself writes joining,
// alive, left and aborted; dead is written by whoever noticed. What a rank wrote
// before its state can be read by who has seen the state. Whoever changes it
// rings afterwards; one that dies between the two is itself noticed by every
// other, each of which rings its own bells (deaths.go).
func (p page) state(rank int) *mem.Word { return p.member(rank, offState) }

// changes counts the changes of states, after each: so as long as it is the same, a rank that
// has found a state need not look again. Written by whoever changes one, and by each rank that
// notices a death.
func (p page) changes() *mem.Word { return mem.WordAt(p, offChanges) }

// claim is how much memory the rank is about to populate (mem.Claims). Written
// by the rank alone. Dies with it set: dead members' claims do not count.
// Stopped with it set: others may be refused memory that it will take.
func (p page) claim(rank int) *mem.Word { return p.member(rank, offClaim) }

// bell is one of the rank's doorbells; the protocol is in bell.go. Rung by all,
// slept on by the rank.
func (p page) bell(rank, i int) *mem.Word { return p.member(rank, offBell+64*i) }

// setReason stores why the rank aborts. Written by the rank before its state is
// aborted, once. Dies before that: nobody reads it.
func (p page) setReason(rank int, why *rdma.PeerError) {
	at := offMembers + rank*perMember + offReason
	n := copy(p[at+16:at+16+maxReason], why.Err.Error())
	mem.WordAt(p, at).Store(uint64(why.Rank)<<8 | uint64(why.Kind))
	mem.WordAt(p, at+8).Store(uint64(n))
}

// reason is to be read when the state is aborted.
func (p page) reason(rank int) *rdma.PeerError {
	at := offMembers + rank*perMember + offReason
	who := mem.WordAt(p, at).Load()
	n := min(mem.WordAt(p, at+8).Load(), maxReason)
	return &rdma.PeerError{Rank: int(who >> 8 & math.MaxInt32), Kind: rdma.Death(who), Err: errors.New(string(p[at+16 : at+16+int(n)]))}
}

// advance moves the rank's state up to next and tells whether it was this call
// that did. It does nothing from a state that is final or not below next.
func (p page) advance(rank int, next uint64) bool {
	for {
		now := p.state(rank).Load()
		if now >= left || now >= next {
			return false
		}
		if p.state(rank).CompareAndSwap(now, next) {
			return true
		}
	}
}

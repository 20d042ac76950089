package core

import (
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"malt/internal/say"
	"malt/rdma"
)

// A rank that cannot go on with a collective call gives it up: its mark says so
// (MarkGaveUp), and if there is room in its queue, a last message says why. A
// rank that gives up because another did passes that one's rank and reason on,
// so that all name where it began. A death explains everything: see blame. All get
// the same error for it: over a network one may hear of it seconds before another.

// givenUp: the call cannot come about, since a rank gave it up.
type givenUp struct {
	op   string
	rank int    // where it began
	why  string // "": it did not say
	kind error  // one of passedOn, a *rdma.PeerError, or ErrLeft
}

// passedOn are the kinds of error that all ranks get where one has failed with
// them: a program that does something else then, such as making a smaller vector,
// has to do so on all ranks.
var passedOn = []error{ErrMismatch, ErrNoMemory}

func (e *givenUp) Error() string {
	if dead := DeathIn(e.kind); dead != nil {
		return dead.Error()
	}
	return e.said().Error()
}

func (e *givenUp) Unwrap() []error { return []error{e.said(), e.kind} }

func (e *givenUp) said() *say.Error {
	if e.why == "" {
		return say.Errorf(e.kind, "rank %d gave up %s", e.rank, e.op).In(e.op).More("different-calls").
			At("after a timeout, an interrupt or an error of its own").Try("Read what rank %d printed.", e.rank)
	}
	why := say.Unpack(nil, e.why)
	return say.Errorf(e.kind, "rank %d failed in %s: %s", e.rank, e.op, why.What).In(e.op).More("different-calls").At("%s", why.Where).Try("%s", why.Do)
}

// Fail gives the call up for the reason err, unless nobody can be waiting for
// this rank in it yet.
func (c *Collective) Fail(err error) {
	if dead := DeathIn(err); dead != nil && c.died == nil {
		c.fault, c.died = dead.Rank, dead
	}
	if c.begun {
		c.sendReason(err)
		c.GiveUp()
	}
}

// sendReason sends the reason. It comes before the mark: who sees that looks for it.
func (c *Collective) sendReason(err error) {
	if c.Job.out == nil {
		return
	}
	b, full := c.Job.out.Begin()
	if b == nil || full != nil {
		return
	}
	n := copy(b, c.Reason(err))
	_ = c.Job.out.Commit(n, rdma.Stamp{Tag: c.n, Age: c.attempt(), Kind: kindReason}, nil) // fails only where it was closed
}

// A reason is the rank; 1 + the index of its kind in passedOn, kindDeath + how the
// rank died, or 0; and the text.
const (
	kindReason  = 1 << 15 // of its message, in place of the part's number
	kindDeath   = 128
	reasonFixed = 4 + 1
	maxReason   = 8 << 10
)

// Reason is what the others are told of err.
func (c *Collective) Reason(err error) []byte {
	said := say.Of(err)
	e := givenUp{rank: c.fault, why: said.Pack(), kind: err}
	var passed *givenUp
	if errors.As(err, &passed) {
		e = *passed
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(e.rank))
	kind := 1 + slices.IndexFunc(passedOn, func(k error) bool { return errors.Is(e.kind, k) })
	if kind == 0 {
		if c.blamed(); c.died != nil {
			e.rank, e.why, kind = c.fault, c.died.Err.Error(), kindDeath+int(c.died.Kind)
		}
	}
	binary.LittleEndian.PutUint32(b, uint32(e.rank))
	b = append(b, byte(kind))
	return append(b, e.why[:min(len(e.why), maxReason)]...)
}

// blamed is what the mark says of who is at fault: a rank that has died, if this one
// knows of any.
func (c *Collective) blamed() uint64 {
	if c.died == nil {
		if dead := Death(c.Job.T); dead != nil {
			c.fault, c.died = dead.Rank, dead
		}
	}
	if c.died != nil {
		return uint64(c.died.Kind)<<RankBits | uint64(c.fault)
	}
	return uint64(c.fault)
}

// blame is what a mark says of the call: a rank, and how it died, 0 if it has not.
func (c *Collective) blame(mark uint64) (rank int, kind rdma.Death) {
	return int(mark & (1<<RankBits - 1)), rdma.Death(mark >> RankBits & (1<<(FaultBits-RankBits) - 1))
}

// dead is the error where rank has given the call up, since another one is dead.
// That one may be this rank, where a network is cut in two.
func (c *Collective) dead(rank int, why *rdma.PeerError) error {
	heard := why.Heard(rank, c.Job.Rank, c.Job.Size)
	c.fault = heard.Rank
	if heard != why {
		return &givenUp{c.Name(), rank, heard.Err.Error(), ErrLeft}
	}
	c.died = heard
	return &givenUp{c.Name(), heard.Rank, "", heard.During(c.Name())}
}

// ReadReason is the error that rank's reason stands for.
func (c *Collective) ReadReason(rank int, b []byte) error {
	e := &givenUp{op: c.Name(), rank: rank, kind: ErrLeft}
	if len(b) >= reasonFixed {
		e.why = string(b[reasonFixed:])
		first, kind := binary.LittleEndian.Uint32(b), int(b[4])
		if first < uint32(c.Job.Size) {
			e.rank = int(first)
			if kind >= kindDeath {
				return c.dead(rank, &rdma.PeerError{Rank: e.rank, Kind: rdma.Death(kind - kindDeath), Err: errors.New(e.why)})
			}
		}
		if kind > 0 && kind <= len(passedOn) {
			e.kind = passedOn[kind-1]
		}
	}
	c.fault = e.rank
	return e
}

// gone is the error where rank can no longer take part.
func (c *Collective) gone(rank int) error {
	state := c.Job.ended(rank)
	if dead := DeathIn(state); dead != nil && LeftOut(c.Job.T, rank) {
		return errAttempt
	} else if dead != nil {
		return dead.During(c.Name())
	}
	if state != nil {
		// It may have ended since it missed another that had ended.
		if mark, _ := c.Job.Marks.Get(rank, MarkGaveUp); mark>>FaultBits >= c.n {
			if first, kind := c.blame(mark); kind == 0 && c.Job.ended(first) != nil {
				rank = first
			}
		}
		c.fault = rank
		e := say.Errorf(ErrLeft, "rank %d has ended, and %s needs it", rank, c.Name()).In(c.Name()).Try(allMustCall).More("different-calls")
		if place := c.Job.Marks.Place(rank); place != "" {
			e.Where = "its last call: " + place
		}
		return e
	}
	if mark, _ := c.Job.Marks.Get(rank, MarkGaveUp); mark>>FaultBits >= c.n {
		fault, kind := c.blame(mark)
		if c.fault = fault; kind != 0 {
			if dead := DeathIn(c.Job.T.State(fault)); dead != nil {
				return c.dead(rank, dead)
			}
			return c.dead(rank, &rdma.PeerError{Rank: fault, Kind: kind, Err: fmt.Errorf("rank %d reported it and gave up", rank)})
		}
		return &givenUp{c.Name(), c.fault, "", ErrLeft}
	}
	return nil
}

// Gone is the error where rank takes part in the call no longer. A rank that is not needed may
// have completed it, and have given up a later one, or left.
func (c *Collective) Gone(rank int, needed bool) error {
	if mark, _ := c.Job.Marks.Get(rank, MarkGaveUp); !needed && mark>>FaultBits != c.n {
		return nil
	}
	return c.gone(rank)
}

// explain is err, or where that says that a rank has left the call, why it may have:
// the ranks are in different ones. It may have had no room to say so.
func (c *Collective) explain(err error) error {
	if !errors.Is(err, ErrLeft) || DeathIn(err) != nil {
		return err
	}
	fault := c.fault
	for _, r := range c.view.Ranks {
		if r == c.Job.Rank || c.from[r].header {
			continue
		}
		there, why := c.peek(r)
		if there {
			if op, _, _, _, failed := parseHeader(c.Job.in[r].next.Data); failed == nil {
				c.fault, why = c.Job.Rank, c.same(r, op)
			}
		}
		if errors.Is(why, ErrMismatch) {
			return why
		}
	}
	c.fault = fault
	return err
}

// Because is err, or where that says that rank gave the call up, or has ended since,
// the reason that it may have left behind what it sent: nobody needs that any more.
func (c *Collective) Because(rank int, err error) error {
	if DeathIn(err) != nil {
		return err
	}
	for s := &c.Job.in[rank]; ; {
		if !s.has {
			var failed error
			if s.next, s.has, failed = s.inbox.Next(); failed != nil || !s.has {
				return err
			}
		}
		switch {
		case s.next.Tag > c.n:
			return err
		case s.next.Tag == c.n && s.next.Kind == kindReason:
			return c.ReadReason(rank, s.next.Data)
		}
		if failed := c.drop(rank); failed != nil {
			return failed
		}
	}
}

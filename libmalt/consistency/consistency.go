// Package consistency says when a gather may go on and which updates it takes.
// It is pure values: no clocks, no transport, no waiting. Package libmalt
// observes the peers, asks here, and waits.
//
//	m, _ := consistency.Parse("ssp:2")
//	m.Waits(7, consistency.Peer{Clock: 4}) // true: 4 < 7-2
//	m.Takes(7, 5)                          // true: 5 >= 7-2
//
// Sources: bsp and ssp from MALT section 3.3 and "Boosting Machine Learning with
// Weakly Consistent Collectives"; notify-ack from MALT-2.
package consistency

import (
	"slices"
	"strconv"
	"strings"

	"malt/internal/say"
)

// Kind is the family of a mode.
type Kind uint8

const (
	BSP       Kind = iota // all ranks in lock-step, the same updates on all
	Async                 // nobody waits
	SSP                   // nobody runs ahead by more than the slack
	NotifyAck             // nothing is overwritten; acknowledged after the fold
)

// Mode is a consistency with its parameter.
type Mode struct {
	Kind Kind
	// N is the slack of SSP in clocks (0 waits as BSP does, but may fold newer
	// updates than its own clock), or the depth of NotifyAck's queue (at least
	// 1). A large slack is Async with a bound; a deep queue is more memory and
	// older updates.
	N uint64
}

const maxN = 1 << 16 // a larger slack or depth is a typing error

var names = []string{"bsp", "async", "ssp:2", "notify-ack"}

// Names returns the modes as they are written, each with a number where it needs one.
func Names() []string { return slices.Clone(names) }

// Parse reads "bsp", "async", "ssp:SLACK", "notify-ack" or "notify-ack:DEPTH".
func Parse(s string) (Mode, error) {
	name, arg, hasArg := strings.Cut(s, ":")
	var n uint64
	if hasArg {
		var err error
		if n, err = strconv.ParseUint(arg, 10, 64); err != nil || n > maxN {
			return Mode{}, say.Errorf(nil, "consistency %.40q: after the colon a whole number from 0 to %d is expected", s, maxN).Try("Write, for example, ssp:2.")
		}
	}
	switch name {
	case "bsp", "async":
		if hasArg {
			return Mode{}, say.Errorf(nil, "consistency %.40q: %s takes no number", s, name).Try("Write %s alone.", name)
		}
		if name == "async" {
			return Mode{Kind: Async}, nil
		}
		return Mode{Kind: BSP}, nil
	case "ssp":
		if !hasArg {
			return Mode{}, say.Errorf(nil, "consistency %.40q: the slack is missing", s).Try("Write, for example, ssp:2.")
		}
		return Mode{Kind: SSP, N: n}, nil
	case "notify-ack":
		if !hasArg {
			n = 1
		}
		if n == 0 {
			return Mode{}, say.Errorf(nil, "consistency %.40q: the depth must be at least 1", s).Try("Write, for example, notify-ack:1.")
		}
		return Mode{Kind: NotifyAck, N: n}, nil
	}
	e := say.Unknown(nil, "consistency", s, "bsp", "async", "ssp", "notify-ack")
	e.Where, e.Do = "it is one of "+strings.Join(names, ", "), strings.Replace(e.Do, `"ssp"`, `"ssp:2"`, 1) // its number is needed
	return Mode{}, e
}

// String is the canonical form, which Parse reads back.
func (m Mode) String() string {
	switch m.Kind {
	case Async:
		return "async"
	case SSP:
		return "ssp:" + strconv.FormatUint(m.N, 10)
	case NotifyAck:
		return "notify-ack:" + strconv.FormatUint(m.N, 10)
	}
	return "bsp"
}

// Depth is the queue depth of the boxes: 0 where newer updates overwrite.
func (m Mode) Depth() int {
	if m.Kind == NotifyAck {
		return int(m.N)
	}
	return 0
}

// MaxScatters is how many scatters a rank may be ahead of its gathers; 0 means
// any number. One more would, on a cycle of ranks, wait for itself.
func (m Mode) MaxScatters() uint64 {
	switch m.Kind {
	case BSP:
		return 1
	case NotifyAck:
		return m.N
	}
	return 0
}

// Peer is what a gather has observed of one other rank.
type Peer struct {
	Clock uint64 // how far it is
	Ready bool   // NotifyAck: its next update is there
	Away  bool   // in a collective that the reader has not completed, or ended in good order
}

// Waits tells whether a gather at the reader's clock own must wait for p. The
// caller asks for in-neighbours, in BSP for every rank.
func (m Mode) Waits(own uint64, p Peer) bool {
	if p.Away {
		return false
	}
	switch m.Kind {
	case BSP:
		return p.Clock < own
	case SSP:
		return p.Clock+m.N < own
	case NotifyAck:
		return !p.Ready
	}
	return false
}

// Takes tells whether a gather at clock own may fold an update of that clock
// (G7 for SSP; the same set on all ranks for BSP).
func (m Mode) Takes(own, clock uint64) bool {
	switch m.Kind {
	case BSP:
		return clock == own
	case SSP:
		return clock+m.N >= own
	}
	return true
}

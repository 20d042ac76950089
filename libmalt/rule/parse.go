package rule

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

// Rule is a consistency with its parameter.
type Rule struct {
	Kind Kind
	// N is the slack of SSP in clocks (0 waits as BSP does, but may fold newer
	// updates than its own clock), or the depth of NotifyAck's queue (at least
	// 1). A large slack is Async with a bound; a deep queue is more memory and
	// older updates.
	N uint64
}

// MaxN is the largest slack or depth: a larger one is a typing error.
const MaxN = 1 << 16

var names = []string{"bsp", "async", "ssp:2", "notify-ack"}

// Names returns the modes as they are written, each with a number where it needs one.
func Names() []string { return slices.Clone(names) }

// Parse reads "bsp", "async", "ssp:SLACK", "notify-ack" or "notify-ack:DEPTH".
func Parse(s string) (Rule, error) {
	name, arg, hasArg := strings.Cut(s, ":")
	var n uint64
	if hasArg {
		var err error
		if n, err = strconv.ParseUint(arg, 10, 64); err != nil || n > MaxN {
			return Rule{}, say.Errorf(nil, "consistency %.40q: expected a whole number from 0 to %d after the colon", s, MaxN).Try("Write, for example, ssp:2.")
		}
	}
	switch name {
	case "bsp", "async":
		if hasArg {
			return Rule{}, say.Errorf(nil, "consistency %.40q: %s takes no number", s, name).Try("Write %s alone.", name)
		}
		if name == "async" {
			return Rule{Kind: Async}, nil
		}
		return Rule{Kind: BSP}, nil
	case "ssp":
		if !hasArg {
			return Rule{}, say.Errorf(nil, "consistency %.40q: the slack is missing", s).Try("Write, for example, ssp:2.")
		}
		return Rule{Kind: SSP, N: n}, nil
	case "notify-ack":
		if !hasArg {
			n = 1
		}
		if n == 0 {
			return Rule{}, say.Errorf(nil, "consistency %.40q: the depth must be at least 1", s).Try("Write, for example, notify-ack:1.")
		}
		return Rule{Kind: NotifyAck, N: n}, nil
	}
	e := say.Unknown(nil, "consistency", s, "bsp", "async", "ssp", "notify-ack")
	e.Where, e.Do = "it is one of "+strings.Join(names, ", "), strings.Replace(e.Do, `"ssp"`, `"ssp:2"`, 1) // its number is needed
	return Rule{}, e
}

// String is the canonical form, which Parse reads back.
func (r Rule) String() string {
	switch r.Kind {
	case Async:
		return "async"
	case SSP:
		return "ssp:" + strconv.FormatUint(r.N, 10)
	case NotifyAck:
		return "notify-ack:" + strconv.FormatUint(r.N, 10)
	}
	return "bsp"
}

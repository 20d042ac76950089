package core

import (
	"time"

	"malt/libmalt/reduce"
)

// Trouble is something about the values of an object that its user should look at. It is told
// once for each object, kind and rank.
type Trouble struct {
	Kind TroubleKind
	Of   *Member
	Rank int

	Own, Senders uint64        // of Slow: how many clocks this rank and that one have made,
	Over         time.Duration // in this time
	Limit, Need  uint64        // of Memlock: bytes that it may lock, and would have to
	Why          error         // of NoRDMA and TapeFull
}

// TroubleKind is a kind of Trouble.
type TroubleKind int

const (
	NotFinite TroubleKind = iota + 1 // a fold has brought NaN or infinity from that rank
	Slow                             // in async that rank scatters far less often than this one
	TapeFull                         // this rank records no more
	TapeEnds                         // the recorded run ends before this one: from here on it is as any other
	Memlock                          // this rank may lock too little memory for RDMA
	NoRDMA                           // RDMA between this rank and that one has failed
)

// troubled is what was told of an object, and what is known of its values.
type troubled struct {
	told    map[[2]int]bool // by kind and rank
	unsound bool            // the result of the last fold is not finite
}

// Warn tells of a trouble, unless that was told before. The caller is in a call on m.
func (m *Member) Warn(t Trouble) {
	key := [2]int{int(t.Kind), t.Rank}
	if m.troubled.told[key] || m.Job.OnTrouble == nil {
		return
	}
	if m.troubled.told == nil {
		m.troubled.told = map[[2]int]bool{}
	}
	m.troubled.told[key] = true
	t.Of = m
	m.Job.OnTrouble(t)
}

// lacks warns where this rank has come to do without RDMA.
func (m *Member) lacks() {
	if m.Job.lacks == nil {
		return
	}
	if lack := m.Job.lacks.Lacks(); lack != nil && lack.Need > 0 {
		m.Warn(Trouble{Kind: Memlock, Rank: lack.Rank, Limit: lack.Limit, Need: lack.Need})
	} else if lack != nil {
		m.Warn(Trouble{Kind: NoRDMA, Rank: lack.Rank, Why: lack.Why})
	}
}

// Brought is called after each fold, with what has brought NaN or infinity: reduce.None, Unknown, or
// an index of ranks, of which some may be Unknown; nil: it is the rank. A rank that has folded it
// sends it on, so only the first fold tells where it comes from.
func (m *Member) Brought(from int, ranks []int) {
	before := m.troubled.unsound
	m.troubled.unsound = from != reduce.None
	if from >= 0 && ranks != nil {
		from = ranks[from]
	}
	if from < 0 || before {
		return
	}
	m.Warn(Trouble{Kind: NotFinite, Rank: from})
}

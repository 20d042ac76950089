package core

import (
	"encoding/binary"
	"slices"

	"malt/internal/say"
	"malt/rdma"
)

// Hosts says which ranks share memory: those of each host, ascending, the hosts in the
// order of their lowest ranks. It is the same on all ranks, and so is the order in which
// they add up.
type Hosts struct {
	Ranks [][]int // by host
	Of    []int   // host of each rank
}

// Several tells whether ranks do not add up in their own order: there are several hosts,
// and some have several ranks.
func (h *Hosts) Several() bool { return len(h.Ranks) > 1 && len(h.Ranks) < len(h.Of) }

// Even is how many ranks each host has, if all have as many, and their numbers follow each
// other; else 0.
func (h *Hosts) Even() int {
	each := len(h.Of) / max(1, len(h.Ranks))
	for r, host := range h.Of {
		if each == 0 || host != r/each {
			return 0
		}
	}
	return each
}

// TellHost is what this rank tells the others of its host: the lowest rank there.
func TellHost(t rdma.Transport) []byte {
	return binary.LittleEndian.AppendUint32(nil, uint32(t.Near()[0]))
}

// HostsOf reads what all ranks have told. What cannot be is not believed: it would
// give other bits on one rank than on another.
func HostsOf(told [][]byte, near []int) (Hosts, error) {
	h := Hosts{Of: make([]int, len(told))}
	for r, b := range told {
		if len(b) != 4 {
			return h, say.Errorf(rdma.ErrCorrupt, "rank %d tells of its host in %d bytes, expected 4", r, len(b))
		}
		switch lowest := binary.LittleEndian.Uint32(b); {
		case lowest == uint32(r):
			h.Of[r] = len(h.Ranks)
			h.Ranks = append(h.Ranks, []int{r})
		case lowest < uint32(r) && h.Ranks[h.Of[lowest]][0] == int(lowest):
			h.Of[r] = h.Of[lowest]
			h.Ranks[h.Of[r]] = append(h.Ranks[h.Of[r]], r)
		default:
			return h, say.Errorf(rdma.ErrCorrupt, "rank %d says that the lowest rank of its host is %d", r, lowest)
		}
	}
	if own := h.Ranks[h.Of[near[0]]]; !slices.Equal(own, near) {
		return h, say.Errorf(ErrMismatch, "%s share memory, and %s say that they are on one host", say.Ranks(near), say.Ranks(own)).In("malt.init")
	}
	return h, nil
}

package libmalt

import (
	"encoding/binary"
	"slices"

	"malt/internal/say"
	"malt/rdma"
)

// hosts says which ranks share memory: those of each host, ascending, the hosts in
// the order of their lowest ranks. It is the same on all ranks, and with it the
// order in which they add up.
type hosts struct {
	ranks [][]int // by host
	of    []int   // host of each rank
}

// several tells whether the order of additions is another than that of ranks: where
// there are hosts, and some of several ranks.
func (h *hosts) several() bool { return len(h.ranks) > 1 && len(h.ranks) < len(h.of) }

// tellHost is what this rank tells the others of its host: the lowest rank there.
func (w *World) tellHost() []byte {
	return binary.LittleEndian.AppendUint32(nil, uint32(w.t.Near()[0]))
}

// hostsOf reads what all ranks have told. What cannot be is not believed: it would
// give other bits on one rank than on another.
func hostsOf(told [][]byte, near []int) (hosts, error) {
	h := hosts{of: make([]int, len(told))}
	for r, b := range told {
		if len(b) != 4 {
			return h, say.Errorf(rdma.ErrCorrupt, "rank %d tells of its host in %d bytes, expected 4", r, len(b))
		}
		switch lowest := binary.LittleEndian.Uint32(b); {
		case lowest == uint32(r):
			h.of[r] = len(h.ranks)
			h.ranks = append(h.ranks, []int{r})
		case lowest < uint32(r) && h.ranks[h.of[lowest]][0] == int(lowest):
			h.of[r] = h.of[lowest]
			h.ranks[h.of[r]] = append(h.ranks[h.of[r]], r)
		default:
			return h, say.Errorf(rdma.ErrCorrupt, "rank %d says that the lowest rank of its host is %d", r, lowest)
		}
	}
	if own := h.ranks[h.of[near[0]]]; !slices.Equal(own, near) {
		return h, say.Errorf(ErrMismatch, "ranks %v share memory, and ranks %v say that they are on one host", near, own).In("malt.init")
	}
	return h, nil
}

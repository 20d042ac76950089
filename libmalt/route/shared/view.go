package shared

import (
	"encoding/binary"

	"malt/libmalt/internal/core"
)

// Where the job goes on when ranks die, a call is of one view, which all its ranks have
// when it ends: the newest in which one of them has begun it. Each shows its own, after
// its spare: the generation, and its ranks as a bitmap. wordCalled releases them, and they
// stay until all have folded.

// viewBytes is what that takes in a job of so many ranks.
func viewBytes(size int) int { return 8 + 8*((size+63)/64) }

func (r *Route) viewRoom(rank int) []byte { return r.spare(rank)[core.BlockBytes:] }

// showView makes v the view of this rank's next call. An unchanged one stays in the caches
// of all ranks.
func (r *Route) showView(v core.View) {
	room := r.viewRoom(r.rank)
	if binary.LittleEndian.Uint64(room) == v.Generation {
		return
	}
	clear(room)
	binary.LittleEndian.PutUint64(room, v.Generation)
	for _, rank := range v.Ranks {
		room[8+rank/8] |= 1 << (rank % 8)
	}
}

// newestView is the newest that one of these ranks shows.
func (r *Route) newestView(ranks []int) (v core.View) {
	var newest []byte
	for _, rank := range ranks {
		room := r.viewRoom(rank)
		if g := binary.LittleEndian.Uint64(room); g > v.Generation {
			v.Generation, newest = g, room[8:]
		}
	}
	for rank := range 8 * len(newest) {
		if newest[rank/8]>>(rank%8)&1 != 0 {
			v.Ranks = append(v.Ranks, rank)
		}
	}
	return v
}

package shared

import (
	"encoding/binary"

	"malt/libmalt/internal/core"
	"malt/rdma"
)

// Where the job goes on when ranks die, a call is of one view, which all its ranks have
// when it ends: the newest when it was decided. All of that view had arrived then: the
// others are dead. The rank that decides shows it, after its spare: the generation, and its
// ranks as a bitmap. wordMeeting releases them, and they stay until all have folded.

// viewBytes is what that takes in a job of so many ranks.
func viewBytes(size int) int { return 8 + 8*((size+63)/64) }

func (r *Route) viewRoom(rank int) []byte { return r.spare(rank)[core.BlockBytes:] }

// showView shows the newest view, in case this rank decides. An unchanged one stays in the
// caches of all ranks.
func (r *Route) showView() {
	room, v := r.viewRoom(r.rank), r.o.Transport().(rdma.Viewed).View()
	if binary.LittleEndian.Uint64(room) == v.Generation {
		return
	}
	clear(room)
	binary.LittleEndian.PutUint64(room, v.Generation)
	for _, rank := range v.Ranks {
		room[8+rank/8] |= 1 << (rank % 8)
	}
}

// decidersView is what the rank shows that has decided on the last call.
func (r *Route) decidersView() (v core.View) {
	d := r.shared.Get(r.home(), wordMeeting)
	room := r.viewRoom(int(d >> decider))
	v.Generation = binary.LittleEndian.Uint64(room)
	for rank := range 8 * len(room[8:]) {
		if room[8+rank/8]>>(rank%8)&1 != 0 {
			v.Ranks = append(v.Ranks, rank)
		}
	}
	return v
}

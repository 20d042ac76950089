package remote

import "malt/rdma/box"

// placing is the owner's side of the rooms of a box at one reader, over one connection.
type placing struct {
	granted bool   // an update waits for its room
	room    room   // number 0: there is none
	last    uint64 // seq of the update that was sent last
}

// grant is a room that the reader offers; one without bytes: it offers no more. What was sent since it was
// offered has used it up.
func (p *placing) grant(r room) error {
	if r.landed > p.last {
		return malformed("a room from when seq %d had landed; %d was sent last", r.landed, p.last)
	}
	p.granted, p.room = r.bytes > 0, room{}
	if p.granted && r.landed == p.last {
		p.room = r
	}
	return nil
}

// waits tells whether the next update has to wait for a room.
func (p *placing) waits() bool { return p.granted && p.room.number == 0 }

// take is the room for the update with header h, which is sent now; not ok: it goes without, and uses the
// room up all the same. Updates of fewer bytes than least do.
func (p *placing) take(h *box.Header, mine bool, least int) (into room, ok bool) {
	into, p.room, p.last = p.room, room{}, h.Seq
	ok = mine && into.number != 0 && h.Bytes >= uint64(least) && h.Bytes <= into.bytes && (into.seq == 0 || into.seq == h.Seq)
	return into, ok
}

// placement is an update on its way into its room; in none, it goes by TCP.
type placement struct {
	room
	size  int    // of the payload
	at    int    // of which so many bytes are written
	write *write // goes on there; nil: none does
}

// next goes on, done once all of it is written. begin begins to write n bytes from byte at on, the last of
// them with the number; it has no write where it has to wait for its turn.
func (p *placement) next(most int, begin func(at, n int, number uint32) (*write, error)) (done bool, err error) {
	if w := p.write; w != nil {
		if !w.done.Load() {
			return false, nil
		}
		if w.err != nil {
			return false, w.err
		}
		p.at, p.write = p.at+w.Bytes, nil
	}
	if p.at == p.size {
		return true, nil
	}
	n, number := min(most, p.size-p.at), uint32(0)
	if p.at+n == p.size { // the others are written
		number = p.number
	}
	p.write, err = begin(p.at, n, number)
	return false, err
}

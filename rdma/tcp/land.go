package tcp

import (
	"errors"
	"time"

	"malt/rdma"
	"malt/rdma/box"
	"malt/rdma/internal/mem"
)

// land takes in what comes over c until that ends; errPeerLeft and a
// *rdma.PeerError are the peer's own last word. Every length and number is
// checked before a byte is written, and an update is published when all of it
// is there. Whoever looks for something may take in what has come (glance), unless
// c is encrypted; one does at a time.
func (l *link) land(c *conn) error {
	in := newInput(c)
	if c.encrypted() {
		for {
			if err := l.landNext(in); err != nil {
				return err
			}
		}
	}
	l.input.Store(in)
	defer func() {
		in.over = true
		in.turn.Unlock()
		l.input.Store(nil)
	}()
	// It keeps the turn where it returns true.
	arrived := func(fd uintptr) bool {
		in.turn.Lock()
		// Until there is nothing: what ends the connection may be behind the rest.
		for in.failed == nil && in.to == in.from && in.take(fd) {
			_ = l.landWhole(in)
		}
		if in.failed != nil || in.to > in.from {
			return true
		}
		in.turn.Unlock()
		return false
	}
	for {
		err := c.own.Read(arrived)
		if err != nil {
			in.turn.Lock()
		}
		switch {
		case in.failed != nil:
			return in.failed
		case err != nil:
			return err
		}
		if err := l.landNext(in); err != nil {
			return err
		}
		in.turn.Unlock()
	}
}

// landNext waits for a frame and lands it.
func (l *link) landNext(in *input) error {
	b, err := in.next(frameBytes)
	if err != nil {
		return err
	}
	h, err := decodeHeader(b)
	if err == nil {
		err = l.frame(in, h)
	}
	if err == nil {
		l.landed.Add(1)
	}
	return err
}

// landWhole lands the frames that are in the buffer from end to end.
func (l *link) landWhole(in *input) error {
	for in.failed == nil && in.to-in.from >= frameBytes {
		h, err := decodeHeader(in.buf[in.from:])
		if err == nil && in.to-in.from < frameBytes+int(h.length) {
			break
		}
		in.failed = l.landNext(in)
	}
	return in.failed
}

// glance lands what has come, as far as that goes without waiting, for somebody who
// looks for it: the goroutine that is woken for it would take longer.
func (l *link) glance() (landed bool) {
	in := l.input.Load()
	if in == nil || !in.turn.TryLock() {
		return false
	}
	defer in.turn.Unlock()
	if in.over || in.failed != nil || in.to > in.from || !in.c.look(in) {
		return false
	}
	if l.landWhole(in) != nil {
		_ = in.c.SetReadDeadline(time.Unix(1, 0)) // wakes the goroutine
	}
	return true
}

func (l *link) frame(in *input, h header) error {
	switch h.kind {
	case data:
		return l.landData(in, h)
	case more:
		return l.landMore(in, h)
	}
	b, err := in.next(int(h.length))
	if err != nil {
		return err
	}
	switch h.kind {
	case announce:
		return l.landAnnounce(h, b)
	case subscribe, ack, done:
		return l.landForRelay(h, b)
	case clock, closed, skip:
		return l.landForReplica(h, b)
	case makeWords, dropWords, setWords, ask:
		return l.landWords(h, b)
	case doneWords, heard:
		return l.landForWords(h, b)
	case resume:
		l.resumed.Store(true)
		l.kick()
		return nil
	case left:
		return errPeerLeft
	default: // aborted
		return l.dead(errAborted(string(b)))
	}
}

// replica finds one by its owner's number; nil for one that is forgotten.
func (l *link) replica(id uint32) (*replica, error) {
	l.rank.mu.Lock()
	defer l.rank.mu.Unlock()
	for _, p := range l.replicas {
		if p.id == id {
			return p, nil
		}
	}
	if id > l.lastBox {
		return nil, malformed("box %d was not announced", id)
	}
	return nil, nil
}

// enter puts a replica into the table.
func (l *link) enter(p *replica) {
	l.rank.mu.Lock()
	defer l.rank.mu.Unlock()
	l.replicas = append(l.replicas[:len(l.replicas):len(l.replicas)], p)
	l.version.Add(1)
}

func (l *link) landAnnounce(h header, b []byte) error {
	name, s, err := decodeAnnounce(h, b)
	if err != nil {
		return err
	}
	if h.id <= l.lastBox {
		return nil // over an earlier connection
	}
	l.lastBox = h.id
	l.enter(&replica{link: l, id: h.id, name: name, spec: s, subscribing: true})
	l.rank.bells.RingBells()
	return nil
}

// landData begins an update, and ends it if it is small.
func (l *link) landData(in *input, h header) error {
	b, err := in.next(preamble)
	if err != nil {
		return err
	}
	p, err := l.replica(h.id)
	if err != nil {
		return err
	}
	if p == nil || !p.ready.Load() || p.busy {
		return malformed("an update of box %d, which nobody reads or of which another is under way", h.id)
	}
	if p.head, err = box.DecodeHeader(b); err != nil {
		return err
	}
	n, last := uint64(h.length-preamble), h.flags&flagLast != 0
	p.mine = h.flags&flagEmpty == 0
	switch {
	case n > p.head.Bytes || last != (n == p.head.Bytes) || !last && n == 0:
		return malformed("an update of %d bytes begins with %d", p.head.Bytes, n)
	case !p.mine && (p.head.Bytes > 0 || p.spec.Depth == 0):
		return malformed("an update that is empty, with %d bytes", p.head.Bytes)
	}
	p.at = box.Progress{Clock: number(b, 8), Published: number(b, 9)}
	if err := p.begin(); err != nil {
		return err
	}
	return p.part(in, int(n), last)
}

func (l *link) landMore(in *input, h header) error {
	p, err := l.replica(h.id)
	if err != nil {
		return err
	}
	last := h.flags&flagLast != 0
	switch {
	case p == nil || !p.busy:
		return malformed("a part of an update of box %d, of which none is under way", h.id)
	case h.flags&flagEmpty != 0:
		if h.length > 0 || !last || p.spec.Depth == 0 {
			return malformed("the end of an update of box %d that is given up, with %d bytes", h.id, h.length)
		}
		p.mine, p.head.Bytes, p.missing = false, 0, 0
	case h.length == 0 || uint64(h.length) > p.missing || last != (uint64(h.length) == p.missing):
		return malformed("a part of %d bytes of an update of box %d that has no room for it", h.length, h.id)
	}
	return p.part(in, int(h.length), last)
}

// begin finds memory for the update p.head; none where the inbox is closed, or
// cannot have it.
func (p *replica) begin() error {
	p.missing = p.head.Bytes
	if p.failed.Load() != nil || !p.hold() {
		p.busy, p.rest = true, nil
		return nil
	}
	b, err := p.box.Begin(&p.head)
	if err == nil {
		p.busy, p.held, p.rest = true, true, b
		return nil
	}
	_ = p.release()
	if !errors.Is(err, rdma.ErrNoMemory) {
		return err
	}
	// The sender cannot be told. The reader is, from now on.
	failed := err // on the heap, which err is not
	p.failed.Store(&failed)
	p.link.rank.bells.RingBells()
	p.busy, p.rest = true, nil
	return nil
}

// part reads n bytes of the update, and publishes it if these are the last.
func (p *replica) part(in *input, n int, last bool) (err error) {
	if p.held {
		err = in.into(p.rest[:n])
		p.rest = p.rest[n:]
	} else {
		err = in.skip(n)
	}
	if err != nil {
		return err
	}
	p.missing -= uint64(n)
	if last {
		if p.held {
			p.box.Commit(&p.head, p.mine, p.at)
		}
		p.drop()
		p.meet()
	}
	return nil
}

// meet has the reader look again when what it was waiting for behind its demand
// has come.
func (p *replica) meet() {
	if a := p.answer; a.demand > p.met.Load() && (p.box.Landed() >= a.head || p.failed.Load() != nil) {
		p.met.Store(a.demand)
		p.link.rank.bells.RingBells()
	}
}

// drop ends an update, complete or not.
func (p *replica) drop() {
	if p.held {
		_ = p.release()
	}
	p.busy, p.held, p.rest = false, false, nil
}

func (l *link) landForReplica(h header, b []byte) error {
	at := box.Progress{Clock: number(b, 0), Published: number(b, 1)}
	if h.kind == closed && h.arg == withdrawn {
		l.landWithdrawn(h.id)
		return nil
	}
	p, err := l.replica(h.id)
	if err != nil || p == nil {
		return err
	}
	if !p.ready.Load() || p.busy && h.kind != skip {
		return malformed("the clock of box %d, which nobody reads or of which an update is under way", h.id)
	}
	r := l.rank
	if h.kind == skip {
		if d := number(b, 0); d > p.answer.demand && d <= p.demanded.Load() {
			p.answer = answer{d, number(b, 1), number(b, 2)}
			p.box.Skip(p.answer.lost)
			p.meet()
		}
		return nil
	}
	p.box.Advance(at)
	if h.kind == clock {
		if p.subscribing {
			p.subscribing = false
			r.mu.Lock()
			p.confirmed = true
			r.mu.Unlock()
			r.bells.RingBells()
		}
		return nil
	}
	p.box.Leave(at)
	r.mu.Lock()
	if !p.taken && !p.withdrawn {
		p.forget()
	}
	r.mu.Unlock()
	p.over.Store(true)
	l.kick()
	return nil
}

// landWithdrawn takes an announcement back, unless the peer is about to hear that
// it is to send: then it sends what there is.
func (l *link) landWithdrawn(id uint32) {
	p, err := l.replica(id)
	if p == nil {
		// It asks whether it can forget the box, and not for the first time.
		if err != nil {
			l.lastBox = id
		}
		p = &replica{link: l, id: id}
		l.enter(p)
	}
	l.rank.mu.Lock()
	if !p.ready.Load() {
		p.withdrawn = true
		p.over.Store(true)
	}
	l.rank.mu.Unlock()
	l.kick()
}

// landForRelay is what the reader of a box of ours says.
func (l *link) landForRelay(h header, b []byte) error {
	var x *relay
	l.rank.mu.Lock()
	known := h.id <= l.rank.lastID
	for _, y := range l.relays {
		if y.pub.id == h.id {
			x = y
		}
	}
	l.rank.mu.Unlock()
	switch {
	case x == nil && known:
	case x == nil:
		return malformed("a reader of box %d, which does not exist", h.id)
	case h.kind == ack && h.arg == excused && x.queue():
		if d := number(b, 0); d > x.answer.Load().demand {
			x.pub.using.Lock()
			lost, head := x.box.Return()
			x.pub.using.Unlock()
			// In this order: whoever sees the ack has an answer to send first.
			x.answer.Store(&answer{d, lost, head})
			x.box.Ack(lost)
		}
		l.kick()
	case h.kind == ack:
		x.box.Ack(number(b, 0))
		if x.queue() {
			l.kick() // there may be room for what the reader was excused from
		}
	case h.kind == subscribe:
		x.wanted.Store(&wanted{number(b, 0), number(b, 1)})
		l.kick()
	case !x.left():
		return malformed("the reader of box %d wants it forgotten, and it is open", h.id)
	default:
		x.over.Store(true)
		l.kick()
	}
	return nil
}

// landWords is what a peer says of its own words.
func (l *link) landWords(h header, b []byte) error {
	r := l.rank
	r.mu.Lock()
	var p *remoteWords
	for _, q := range l.remotes {
		if q.id == h.id {
			p = q
		}
	}
	known := h.id <= l.lastWords // over an earlier connection, perhaps
	switch {
	case h.kind == makeWords && !known && h.arg <= maxWords:
		l.lastWords = h.id
		p = &remoteWords{link: l, id: h.id, name: string(b), line: make([]mem.Word, h.arg)}
		l.remotes = append(l.remotes[:len(l.remotes):len(l.remotes)], p)
		l.version.Add(1)
	case h.kind == ask && p != nil:
		p.asked.Store(number(b, 0))
		l.kick()
	case h.kind == dropWords && p != nil:
		p.dropped = true
		p.over.Store(true)
		l.kick()
	}
	r.mu.Unlock()
	switch {
	case h.kind == makeWords && h.arg > maxWords:
		return malformed("%d words; expected %d at most", h.arg, maxWords)
	case h.kind == makeWords:
		r.bells.RingBells()
	case !known:
		return malformed("words %d were not announced", h.id)
	case h.kind == setWords && p != nil:
		return p.land(int(h.arg), b, h.flags&flagQuiet != 0)
	}
	return nil
}

// landForWords is what a peer says of words of ours: it has heard all of them, or
// has no use for them.
func (l *link) landForWords(h header, b []byte) error {
	l.rank.mu.Lock()
	defer l.rank.mu.Unlock()
	if h.id > l.rank.lastID {
		return malformed("words %d, which do not exist", h.id)
	}
	for _, w := range l.words {
		switch {
		case w.id != h.id:
		case h.kind == heard:
			if n := number(b, 0); n > w.heard.Load() && n <= w.asked.Load() {
				w.heard.Store(n)
				l.rank.ring(w.words.bell.Load())
			}
		default:
			w.over.Store(true)
			l.kick()
		}
	}
	return nil
}

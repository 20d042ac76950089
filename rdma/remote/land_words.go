package remote

import "malt/rdma/internal/mem"

// landWords is what a peer says of its own words.
func (l *link) landWords(h header, b []byte) error {
	r := l.rank
	r.mu.Lock()
	p := first(l.remotes, func(p *remoteWords) bool { return p.id == h.id })
	known := h.id <= l.lastWords // over an earlier connection, perhaps
	var tooMuch error
	switch {
	case h.kind == makeWords && !known && h.arg <= maxWords:
		l.lastWords = h.id
		p = &remoteWords{link: l, id: h.id, name: string(b), line: make([]mem.Word, h.arg)}
		if tooMuch = l.keep(p.bytes()); tooMuch == nil {
			l.remotes = append(l.remotes, p)
			l.version.Add(1)
		}
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
	case tooMuch != nil:
		return tooMuch
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
	w := first(l.words, func(w *wordsRelay) bool { return w.id == h.id })
	switch {
	case w == nil:
	case h.kind == heard:
		if n := number(b, 0); n > w.heard.Load() && n <= w.asked.Load() {
			w.heard.Store(n)
			l.rank.ring(w.words.bell.Load())
		}
	default:
		w.over.Store(true)
		l.kick()
	}
	return nil
}

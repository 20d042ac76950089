package remote

func (s *session) controlWords(w *wordsSession) {
	switch {
	case w.over.Load() || w.dropped.Load():
		if w.announced && w.dropped.Load() && !w.withdrawn {
			w.withdrawn = true
			s.frame(dropWords, 0, w.id, 0)
		}
		s.remove(func(l *link) { l.words = without(l.words, w.wordsRelay) })
	case !w.announced:
		w.announced = true
		h := header{kind: makeWords, id: w.id, arg: uint32(w.words.n), length: uint32(len(w.words.name))}
		s.out = append(h.append(s.out), w.words.name...)
		s.posted.Add(1)
	}
}

// survey takes the words' values.
func (w *wordsSession) survey() {
	w.changed = false
	if w.over.Load() || w.dropped.Load() {
		return
	}
	// Before the values: whose ring or question this is has stored them. What an
	// earlier connection was to bring may not have arrived.
	w.ask = w.asked.Load()
	w.wake = w.loud.Swap(false) || w.wake || !w.started
	own := w.words.lines[w.words.rank.cfg.Rank]
	if w.now == nil {
		w.now, w.sent = make([]uint64, len(own)), make([]uint64, len(own))
	}
	for i := range own {
		w.now[i] = own[i].Load()
		w.changed = w.changed || w.now[i] != w.sent[i] || !w.started
	}
}

// tellWords sends what has changed, or one word to wake who waits.
func (s *session) tellWords(w *wordsSession) {
	flags := uint8(flagQuiet)
	if w.wake {
		flags = 0
	}
	told := false
	for from := 0; from < len(w.now); {
		if w.started && w.now[from] == w.sent[from] {
			from++
			continue
		}
		to := from + 1
		for to < len(w.now) && to-from < setBatch && (!w.started || w.now[to] != w.sent[to]) {
			to++
		}
		s.frame(setWords, flags, w.id, uint32(from), w.now[from:to]...)
		told, from = true, to
	}
	if !told && len(w.now) > 0 {
		s.frame(setWords, flags, w.id, 0, w.now[0])
	}
	copy(w.sent, w.now)
	w.started, w.wake = true, false
}

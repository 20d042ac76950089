package tcp

import "slices"

// addRelay enters a relay; rank.mu is held. To a peer that is gone nothing is
// relayed.
func (l *link) addRelay(x *relay) {
	if l.over {
		x.end()
		return
	}
	l.relays = append(slices.Clip(l.relays), x)
	l.version.Add(1)
	l.kick()
}

// end is that of a relay: what it held can be used again.
func (x *relay) end() {
	x.finish()
	x.box.Close()
	_ = x.pub.release()
}

func (l *link) addWords(w *words) {
	if l.over {
		return
	}
	l.words = append(slices.Clip(l.words), &wordsRelay{words: w, id: w.id})
	l.version.Add(1)
	l.kick()
}

func (l *link) dropWords(w *words) {
	for _, x := range l.words {
		if x.words == w {
			x.dropped.Store(true)
		}
	}
	l.kick()
}

// wordsChanged has a new value sent at once.
func (l *link) wordsChanged(w *words) {
	if x := l.wordsRelay(w); x != nil {
		x.loud.Store(true)
		l.kick()
	}
}

// wordsRelay is what takes w to the peer; nil once that needs nothing any more.
func (l *link) wordsRelay(w *words) *wordsRelay {
	r := l.rank
	r.mu.Lock()
	list := l.words
	r.mu.Unlock()
	for _, x := range list {
		if x.words == w {
			return x
		}
	}
	return nil
}

// keep counts what is kept of an announcement, bytes and its entry, and refuses what would be too much:
// only this rank's own calls may have it take more memory. rank.mu is held.
func (l *link) keep(bytes int) error {
	if l.kept+entryBytes+bytes > mostKept {
		return malformed("it has announced boxes and words for which more than %d bytes would be kept", mostKept)
	}
	l.kept += entryBytes + bytes
	return nil
}

// entryBytes is what an announcement takes besides its texts and words.
const entryBytes = 512

func (l *link) dropReplica(p *replica) {
	l.replicas = without(l.replicas, p)
	l.kept -= entryBytes + p.bytes()
}

func (l *link) dropRemote(p *remoteWords) {
	l.remotes = without(l.remotes, p)
	l.kept -= entryBytes + p.bytes()
}

func (p *replica) bytes() int     { return len(p.name) + len(p.spec.About) }
func (p *remoteWords) bytes() int { return len(p.name) + 8*len(p.line) }

// announcedAs is the oldest box of that name that nobody has subscribed to;
// rank.mu is held.
func (l *link) announcedAs(name string) *replica {
	for _, p := range l.replicas {
		if p.name == name && !p.taken && !p.withdrawn {
			return p
		}
	}
	return nil
}

func (l *link) announcedWords(name string) *remoteWords {
	for _, p := range l.remotes {
		if p.name == name && !p.taken && !p.dropped {
			return p
		}
	}
	return nil
}

// without is list without one element, in new memory.
func without[T comparable](list []T, gone T) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return x == gone })
}

package remote

import "slices"

// addRelay enters a relay; rank.mu is held. To a peer that is gone nothing is
// relayed.
func (l *link) addRelay(x *relay) {
	if l.is(over) {
		x.end()
		return
	}
	l.relays = append(l.relays, x)
	l.version.Add(1)
	l.kick()
}

// end is that of a relay which no session has: what it held can be used again.
func (x *relay) end() {
	x.box.Close()
	_ = x.pub.release()
}

func (l *link) addWords(w *words) {
	if l.is(over) {
		return
	}
	l.words = append(l.words, &wordsRelay{words: w, id: w.id})
	l.version.Add(1)
	l.kick()
}

func (l *link) dropWords(w *words) {
	if x := first(l.words, func(x *wordsRelay) bool { return x.words == w }); x != nil {
		x.dropped.Store(true)
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
	l.rank.mu.Lock()
	defer l.rank.mu.Unlock()
	return first(l.words, func(x *wordsRelay) bool { return x.words == w })
}

// keep counts what is kept of an announcement, bytes and its entry, and refuses what would be too much:
// only this rank's own calls may have it take more memory. rank.mu is held.
func (l *link) keep(bytes int) error {
	if l.kept+entryBytes+bytes > mostKept {
		return malformed("it announced boxes and words that need more than %d bytes", mostKept)
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
	return first(l.replicas, func(p *replica) bool { return p.name == name && !p.taken && !p.withdrawn })
}

func (l *link) announcedWords(name string) *remoteWords {
	return first(l.remotes, func(p *remoteWords) bool { return p.name == name && !p.taken && !p.dropped })
}

// first is the first that fits, or nil.
func first[T any](list []*T, fits func(*T) bool) *T {
	if i := slices.IndexFunc(list, fits); i >= 0 {
		return list[i]
	}
	return nil
}

// without is list without one element.
func without[T comparable](list []T, gone T) []T {
	return slices.DeleteFunc(list, func(x T) bool { return x == gone })
}

package remote

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"malt/rdma"
	"malt/rdma/internal/ends"
	"malt/rdma/internal/mem"
)

// words is one rank's hold on the words of all. Each rank owns a line of it; the
// lines of the others are copies that those who land write, from when they
// are announced.
type words struct {
	rank   *rank
	t      *Transport // that closes it; from when it has come about
	id     uint32
	name   string
	n      int
	bell   atomic.Uint64 // whom a change rings
	lines  [][]mem.Word  // by rank, when all have theirs; before that the own only
	theirs []*remoteWords
	closed atomic.Bool
	sets   atomic.Uint64 // how often this rank has Set one
}

var _ rdma.Words = (*words)(nil)

// wordsRelay takes this rank's words to one peer.
type wordsRelay struct {
	words   *words
	id      uint32
	loud    atomic.Bool // somebody must be woken
	dropped atomic.Bool // they did not come about
	over    atomic.Bool // the peer needs nothing any more

	// Up to which set somebody has asked whether the peer has heard it, and it has.
	asked, heard atomic.Uint64
}

// remoteWords is a peer's words as announced here, and who has taken them.
type remoteWords struct {
	link *link
	id   uint32 // its owner's number
	name string
	line []mem.Word

	dropped bool                  // rank.mu
	taken   bool                  // rank.mu
	words   atomic.Pointer[words] // from when all had theirs
	over    atomic.Bool           // closed here: the owner can forget us
	asked   atomic.Uint64         // the owner's last question, which everything before has landed
}

// Words announces this rank's words and waits for those of all others. Given up,
// they stay announced, since others may have taken them already: the next call
// of the same name goes on with them.
func (t *Transport) Words(ctx context.Context, name string, n int) (_ rdma.Words, err error) {
	defer rdma.During(&err, "rank %d: Words %s", t.Rank(), name)
	if err := t.open.Check(); err != nil {
		return nil, err
	}
	if n < 0 || n > maxWords || len(name) > maxName {
		return nil, fmt.Errorf("%d words under a name of %d bytes; expected 0 to %d and at most %d", n, len(name), maxWords, maxName)
	}
	w, err := t.resume(name, n)
	if err != nil {
		return nil, err
	}
	err = t.await(ctx, func() ([]int, error) { return t.takeWords(w) })
	r := t.rank
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		w.t = t
		err = ends.Adopt(&t.open, w)
	}
	if err != nil {
		r.words[name] = w
		for _, p := range w.theirs {
			if p != nil {
				p.taken = false
			}
		}
		clear(w.theirs)
		return nil, err
	}
	delete(r.words, name)
	for _, p := range w.theirs {
		if p != nil {
			w.lines[p.link.peer] = p.line
			p.words.Store(w)
		}
	}
	return w, nil
}

// resume finds the words that an earlier call left, or makes and announces new
// ones.
func (t *Transport) resume(name string, n int) (*words, error) {
	r := t.rank
	r.mu.Lock()
	defer r.mu.Unlock()
	w, there := r.words[name]
	if there && w == nil {
		return nil, errors.New("another call of this rank is waiting for that name")
	}
	if there && w.n != n {
		for _, l := range r.ranks {
			l.dropWords(w)
		}
		w = nil
	}
	if w == nil {
		w = &words{rank: r, id: r.newID(), name: name, n: n, lines: make([][]mem.Word, r.cfg.Size), theirs: make([]*remoteWords, r.cfg.Size)}
		w.lines[r.cfg.Rank] = make([]mem.Word, n)
		for _, l := range r.ranks {
			l.addWords(w)
		}
	}
	r.words[name] = nil // in use
	w.bell.Store(t.bell.BellID())
	return w, nil
}

// takeWords looks for the words of all others, and takes them if none is missing.
func (t *Transport) takeWords(w *words) (missing []int, err error) {
	r := t.rank
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, l := range r.ranks {
		peer := l.peer
		p := l.announcedWords(w.name)
		w.theirs[peer] = p
		if p == nil {
			if err := rdma.Gone(r.state(peer), "words "+w.name, peer); err != nil {
				clear(w.theirs)
				return nil, err
			}
			missing = append(missing, peer)
		} else if len(p.line) != w.n {
			clear(w.theirs)
			return nil, &rdma.MismatchError{Name: w.name, Rank: peer, Ours: countWords(w.n), Theirs: countWords(len(p.line))}
		}
	}
	if len(missing) > 0 {
		clear(w.theirs)
		return missing, nil
	}
	for _, p := range w.theirs {
		if p != nil {
			p.taken = true
		}
	}
	return nil, nil
}

func countWords(n int) string { return fmt.Sprintf("%d words per rank", n) }

// Set also rings this rank's own bell, since others of its goroutines may wait.
func (w *words) Set(i int, v uint64) {
	if w.closed.Load() {
		return
	}
	w.lines[w.rank.cfg.Rank][i].Swap(v)
	w.sets.Add(1)
	w.rank.ring(w.bell.Load())
	for _, l := range w.rank.ranks {
		l.wordsChanged(w)
	}
}

// Put is sent with what comes next, or a moment later.
func (w *words) Put(i int, v uint64) {
	if w.closed.Load() {
		return
	}
	w.lines[w.rank.cfg.Rank][i].Store(v)
	w.rank.later.ask()
}

// Get looks at the state before the word: behind a final state the word is
// final.
func (w *words) Get(rank, i int) (uint64, error) {
	if rank < 0 || rank >= len(w.lines) || i < 0 || i >= w.n {
		return 0, fmt.Errorf("word %d of rank %d; there are %d words of %d ranks", i, rank, w.n, len(w.lines))
	}
	if w.closed.Load() {
		return 0, rdma.ErrClosed
	}
	err := w.rank.state(rank)
	return w.lines[rank][i].Load(), err
}

// Peek implements rdma.Words.
func (w *words) Peek(rank, i int) uint64 { return w.lines[rank][i].Load() }

// Heard asks the peer, behind the values.
func (w *words) Heard(rank int) bool {
	if rank < 0 || rank >= len(w.lines) || w.rank.links[rank] == nil || w.rank.state(rank) != nil {
		return true
	}
	x := w.rank.links[rank].wordsRelay(w)
	if x == nil || x.over.Load() {
		return true
	}
	sets := w.sets.Load()
	if x.heard.Load() >= sets {
		return true
	}
	if x.asked.Load() < sets {
		x.asked.Store(sets)
		w.rank.links[rank].kick()
	}
	return false
}

// Close leaves this rank's own line with those who have yet to join it.
func (w *words) Close() error {
	if !w.closed.CompareAndSwap(false, true) {
		return nil
	}
	w.t.open.Forget(w)
	for _, p := range w.theirs {
		if p != nil {
			p.over.Store(true)
			p.link.kick()
		}
	}
	return nil
}

// land stores values that the owner has set.
func (p *remoteWords) land(from int, b []byte, quiet bool) error {
	if n := len(b) / 8; len(b)%8 != 0 || from < 0 || from > len(p.line) || n > len(p.line)-from {
		return malformed("%d bytes of words from %d on; there are %d words", len(b), from, len(p.line))
	}
	for i := range len(b) / 8 {
		p.line[from+i].Swap(number(b, i))
	}
	if w := p.words.Load(); w != nil && !quiet && !p.over.Load() {
		w.rank.ring(w.bell.Load())
	}
	return nil
}

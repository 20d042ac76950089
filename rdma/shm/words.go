package shm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"malt/rdma"
	"malt/rdma/internal/ends"
	"malt/rdma/internal/mem"
	"malt/rdma/rendezvous"
)

// A rank's words lie in memory of its own, which the others map:
//
//	0	number of the doorbell that Set of the others rings
//	64	word 0, word 1, …
//
// The doorbell is stored before the memory is announced. Only the rank itself
// stores a word, by Set or Put, and the others map them for reading; but in
// Shared, where all write: there who stores what, and in which order, is the
// caller's. A rank that dies has its last value there for ever.
const wordsHeader = 64

// maxWords is the most that anybody could mean.
const maxWords = 1 << 30

// words is one rank's hold on the words of all.
type words struct {
	t         *Transport
	name      string
	n         int
	bytes     int // of a block
	guard     mem.Guard
	own       []byte
	maps      [][]byte // by rank; own among them
	blocks    [][]byte // of Shared, by rank; nil: these are Words
	announced *rendezvous.Announcement
}

var _ rdma.Words = (*words)(nil)

// Words announces this rank's words and maps those of all others. One that is
// given up stays announced, since others may have mapped it already: the next
// call of the same name goes on with it.
func (t *Transport) Words(ctx context.Context, name string, n int) (rdma.Words, error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	op := fmt.Sprintf("rank %d: Words %s", t.Rank(), name)
	if n < 0 || n > maxWords {
		return nil, fmt.Errorf("%s: %d words; expected 0 to %d", op, n, maxWords)
	}
	w, err := t.resume(name, n)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	if err = w.complete(ctx, t); err == nil {
		t.rank.mu.Lock()
		delete(t.rank.pending, name)
		t.rank.mu.Unlock()
		err = ends.Adopt(&t.open, w)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", op, errors.Join(err, t.suspend(w)))
	}
	return w, nil
}

// resume finds the words that an earlier call left, or makes new ones.
func (t *Transport) resume(name string, n int) (*words, error) {
	r := t.rank
	r.mu.Lock()
	w, there := r.pending[name]
	if there && w == nil {
		r.mu.Unlock()
		return nil, errors.New("another call of this rank waits for that name")
	}
	if r.pending == nil {
		r.mu.Unlock()
		return nil, rdma.ErrClosed
	}
	r.pending[name] = nil // in use
	r.mu.Unlock()
	var err error
	if there && w.n != n {
		w.announced.Withdraw()
		err = w.unmap()
		w = nil
	}
	if w == nil && err == nil {
		w = &words{t: t, name: name, n: n, maps: make([][]byte, t.Size())}
		err = t.makeWords(w)
	}
	if err != nil {
		r.mu.Lock()
		delete(r.pending, name)
		r.mu.Unlock()
		return nil, err
	}
	w.t = t
	mem.WordAt(w.own, 0).Store(t.host.BellID(t.bell))
	return w, nil
}

// suspend keeps words that did not come about for the next call, or for Close.
func (t *Transport) suspend(w *words) error {
	err := w.unmapOthers()
	r := t.rank
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending == nil { // closed meanwhile
		return errors.Join(err, w.unmap())
	}
	r.pending[w.name] = w
	return err
}

// makeWords makes and announces this rank's own part.
func (t *Transport) makeWords(w *words) (err error) {
	var files []*mem.File
	part := func(name string, bytes int, mapped func(*mem.File) ([]byte, error)) (b []byte, err error) {
		f, err := mem.NewFile(name, bytes)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
		if b, err = mapped(f); err == nil {
			err = t.host.Reserve(b)
		}
		if err == nil {
			err = f.Seal(w.blocks == nil)
		}
		return b, err
	}
	w.own, err = part("malt-words", wordsHeader+8*w.n, func(f *mem.File) ([]byte, error) { return f.Map(true) })
	if err == nil && w.blocks != nil {
		w.blocks[t.Rank()], err = part("malt-shared", w.bytes, (*mem.File).MapForUser)
	}
	if err == nil {
		mem.WordAt(w.own, 0).Store(t.host.BellID(t.bell))
		w.announced, err = t.host.Announce(w.key(), rendezvous.Region{
			Text: w.String(), Readers: t.others(), Files: files,
		})
	} else {
		for _, f := range files {
			f.Close()
		}
	}
	if err != nil {
		return errors.Join(err, w.unmap())
	}
	return nil
}

// complete maps the parts of all others.
func (w *words) complete(ctx context.Context, t *Transport) error {
	others := t.others()
	err := t.fetch(ctx, w.key(), others, func(i int, r rendezvous.Region) (err error) {
		if r.Text != w.String() {
			return &rdma.MismatchError{Name: w.name, Rank: others[i], Ours: w.String(), Theirs: r.Text}
		}
		if w.blocks == nil && len(r.Files) != 1 || w.blocks != nil && len(r.Files) != 2 ||
			r.Files[0].Size() != wordsHeader+8*w.n || w.blocks != nil && r.Files[1].Size() != w.bytes {
			return fmt.Errorf("rank %d announced other memory than that of %s", others[i], r.Text)
		}
		if w.maps[others[i]], err = r.Files[0].Map(w.blocks != nil); err == nil && w.blocks != nil {
			w.blocks[others[i]], err = r.Files[1].Map(true)
		}
		return err
	})
	if err != nil {
		return err
	}
	w.maps[t.Rank()] = w.own
	return nil
}

// others are all ranks of the machine but this one.
func (t *Transport) others() []int {
	return slices.DeleteFunc(slices.Clone(t.Near()), func(rank int) bool { return rank == t.Rank() })
}

// key is what the memory is announced under.
func (w *words) key() string {
	if w.blocks != nil {
		return "shared " + w.name
	}
	return "words " + w.name
}

// String is what all ranks must agree on.
func (w *words) String() string {
	if w.blocks != nil {
		return fmt.Sprintf("%d bytes and %d words per rank", w.bytes, w.n)
	}
	return fmt.Sprintf("%d words per rank", w.n)
}

func (w *words) word(rank, i int) *mem.Word { return mem.WordAt(w.maps[rank], wordsHeader+8*i) }

// Set stores with an exchange and then rings: who sleeps has looked before it.
func (w *words) Set(i int, v uint64) {
	if !w.guard.Enter() {
		return
	}
	defer w.guard.Exit()
	w.word(w.t.Rank(), i).Swap(v)
	w.ringAll()
}

func (w *words) ringAll() {
	for _, rank := range w.t.Near() {
		w.t.host.Ring(mem.WordAt(w.maps[rank], 0).Load())
	}
}

func (w *words) Put(i int, v uint64) {
	if !w.guard.Enter() {
		return
	}
	defer w.guard.Exit()
	w.word(w.t.Rank(), i).Store(v)
}

// Get looks at the state before the word: behind a final state the word is
// final. Who waits calls it again and again, so nothing is deferred.
func (w *words) Get(rank, i int) (v uint64, err error) {
	if !w.guard.Enter() {
		return 0, rdma.ErrClosed
	}
	if rank < 0 || rank >= len(w.maps) || w.maps[rank] == nil || i < 0 || i >= w.n {
		err = fmt.Errorf("word %d of rank %d; there are %d words of ranks %v", i, rank, w.n, w.t.Near())
	} else {
		err = w.t.host.State(rank)
		v = w.word(rank, i).Load()
	}
	w.guard.Exit()
	return v, err
}

// Heard: what is stored can be read.
func (w *words) Heard(int) bool { return true }

// Close leaves the announcement: others may not have mapped it yet.
func (w *words) Close() error {
	if !w.guard.Close(nil) {
		return nil
	}
	w.t.open.Forget(w)
	return errors.Join(w.unmapOthers(), w.unmap())
}

func (w *words) unmapOthers() (err error) {
	for rank, m := range w.maps {
		if rank != w.t.Rank() {
			err = errors.Join(err, mem.Unmap(m))
		}
		w.maps[rank] = nil
	}
	for rank, b := range w.blocks {
		if rank != w.t.Rank() {
			err = errors.Join(err, mem.Unmap(b))
			w.blocks[rank] = nil
		}
	}
	return err
}

// unmap undoes makeWords.
func (w *words) unmap() error {
	err := mem.Unmap(w.own)
	w.own = nil
	if w.blocks != nil {
		err = errors.Join(err, mem.Unmap(w.blocks[w.t.Rank()]))
	}
	return err
}

package shm

import (
	"context"
	"errors"
	"fmt"
	"os"
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
// In Shared a block of bytes comes first, and this with the next page.
//
// The doorbell is stored before the memory is announced. The others map it for
// reading; that of a Shared for writing.
const wordsHeader = 64

// maxWords is the most that anybody could mean.
const maxWords = 1 << 30

// words is one rank's hold on the words of all.
type words struct {
	ends.Words
	t         *Transport
	name      string
	bytes     int // of a block
	own       []byte
	held      []*hold // of others
	announced *rendezvous.Announcement
}

var _ rdma.Words = (*words)(nil)

// Words announces this rank's words and maps those of all others. One that is
// given up stays announced, since others may have mapped it already: the next
// call of the same name goes on with it.
func (t *Transport) Words(ctx context.Context, name string, n int) (_ rdma.Words, err error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	defer rdma.During(&err, "rank %d: Words %s", t.Rank(), name)
	if n < 0 || n > maxWords {
		return nil, fmt.Errorf("%d words; expected 0 to %d", n, maxWords)
	}
	w, err := t.resume(name, n)
	if err != nil {
		return nil, err
	}
	if err = w.complete(ctx, t); err == nil {
		t.rank.mu.Lock()
		delete(t.rank.pending, name)
		t.rank.mu.Unlock()
		err = ends.Adopt(&t.open, w)
	}
	if err != nil {
		return nil, errors.Join(err, t.suspend(w))
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
		return nil, errors.New("another call of this rank is waiting for that name")
	}
	if r.pending == nil {
		r.mu.Unlock()
		return nil, rdma.ErrClosed
	}
	r.pending[name] = nil // in use
	r.mu.Unlock()
	var err error
	if there && w.N != n {
		w.announced.Withdraw()
		err = w.unmap()
		w = nil
	}
	if w == nil && err == nil {
		w = t.words(name, 0, n)
		err = w.make()
	}
	if err != nil {
		r.mu.Lock()
		delete(r.pending, name)
		r.mu.Unlock()
		return nil, err
	}
	w.t = t
	w.bell(w.own).Store(t.Host.BellID(t.bell))
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

// words are n words behind a block of so many bytes.
func (t *Transport) words(name string, bytes, n int) *words {
	page := os.Getpagesize()
	w := &words{t: t, name: name, bytes: bytes, held: make([]*hold, t.Size())}
	w.Words = ends.Words{
		Rank: t.Rank(), N: n, At: (bytes+page-1)/page*page + wordsHeader,
		Maps: make([][]byte, t.Size()), State: t.State, Wake: w.ring,
	}
	return w
}

// make makes and announces this rank's own part.
func (w *words) make() (err error) {
	t := w.t
	f, err := mem.NewFile("malt-words", w.size())
	if err != nil {
		return err
	}
	if w.own, err = f.Map(true); err == nil {
		err = t.Host.Reserve(w.own[w.At-wordsHeader:])
	}
	if err == nil && w.Blocks != nil { // by a mapping that user code may hold
		if w.Blocks[t.Rank()], err = f.MapForUser(w.bytes); err == nil {
			err = t.Host.Reserve(w.Blocks[t.Rank()])
		}
	}
	if err == nil && w.Blocks == nil {
		err = f.Seal()
	}
	if err != nil {
		f.Close()
		return errors.Join(err, w.unmap())
	}
	w.bell(w.own).Store(t.Host.BellID(t.bell))
	w.announced, err = t.Host.Announce(w.key(), rendezvous.Region{
		Text: w.String(), Readers: t.others(), Files: []*mem.File{f},
	})
	if err != nil {
		return errors.Join(err, w.unmap())
	}
	return nil
}

// size is that of one rank's memory.
func (w *words) size() int { return w.At + 8*w.N }

// complete maps the parts of all others that the job does not go on without.
func (w *words) complete(ctx context.Context, t *Transport) error {
	others := t.others()
	for {
		err := w.mapParts(ctx, t, others)
		var dead *rdma.PeerError
		if !errors.As(err, &dead) || t.View().Has(dead.Rank) {
			return err
		}
		if err := w.unmapOthers(); err != nil {
			return err
		}
		others = slices.DeleteFunc(others, func(rank int) bool { return rank == dead.Rank })
	}
}

func (w *words) mapParts(ctx context.Context, t *Transport, others []int) error {
	err := t.fetch(ctx, w.key(), others, func(i int, r rendezvous.Region) (err error) {
		if r.Text != w.String() {
			return &rdma.MismatchError{Name: w.name, Rank: others[i], Ours: w.String(), Theirs: r.Text}
		}
		if len(r.Files) != 1 || r.Files[0].Size() != w.size() {
			return fmt.Errorf("rank %d announced other memory than that of %s", others[i], r.Text)
		}
		h, err := t.holds.take(r.Files[0], w.Blocks != nil, w.size())
		if err != nil {
			return err
		}
		w.held[others[i]], w.Maps[others[i]] = h, h.bytes[:w.size()]
		if w.Blocks != nil {
			w.Blocks[others[i]] = h.bytes[:w.bytes:w.bytes]
		}
		return nil
	})
	if err != nil {
		return err
	}
	w.Maps[t.Rank()] = w.own
	return nil
}

// others are all ranks of the machine but this one.
func (t *Transport) others() []int {
	return slices.DeleteFunc(slices.Clone(t.Near()), func(rank int) bool { return rank == t.Rank() })
}

// key is what the memory is announced under.
func (w *words) key() string {
	if w.Blocks != nil {
		return sharedName(w.name)
	}
	return "words " + w.name
}

func sharedName(name string) string { return "shared " + name }

// String is what all ranks must agree on.
func (w *words) String() string {
	if w.Blocks != nil {
		return fmt.Sprintf("%d bytes and %d words per rank", w.bytes, w.N)
	}
	return fmt.Sprintf("%d words per rank", w.N)
}

func (w *words) bell(memory []byte) *mem.Word { return mem.WordAt(memory, w.At-wordsHeader) }

func (w *words) ring() {
	w.t.Host.RingEach(w.t.Near(), func(rank int) uint64 {
		if m := w.Maps[rank]; m != nil {
			return w.bell(m).Load()
		}
		return 0
	})
}

// Close leaves the announcement: others may not have mapped it yet.
func (w *words) Close() error {
	if !w.Guard.Close(nil) {
		return nil
	}
	w.t.open.Forget(w)
	return errors.Join(w.unmapOthers(), w.unmap())
}

func (w *words) unmapOthers() (err error) {
	for rank, h := range w.held {
		err = errors.Join(err, h.give())
		w.held[rank], w.Maps[rank] = nil, nil
	}
	for rank := range w.Blocks {
		if rank != w.t.Rank() {
			w.Blocks[rank] = nil
		}
	}
	return err
}

// unmap undoes make.
func (w *words) unmap() error {
	err := mem.Unmap(w.own)
	w.own = nil
	if w.Blocks != nil {
		err = errors.Join(err, mem.Unmap(w.Blocks[w.t.Rank()]))
	}
	return err
}

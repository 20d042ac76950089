package inmem

import (
	"context"
	"errors"
	"fmt"

	"malt/rdma"
	"malt/rdma/internal/ends"
)

// wordSet is the words of all ranks under one name, or of the ranks of a host,
// with the blocks of a Shared.
// Who makes it first enters it into job.words; who makes it last takes it out, so
// that the name is free for the next.
type wordSet struct {
	key   string
	ranks []int  // whose it is, ascending
	parts []part // by rank
	here  int    // how many of them have made theirs
}

// part is what one rank has made.
type part struct {
	what  string // all must agree on this
	words []byte
	block []byte // of a Shared
	bell  uint64 // whom Set of the others rings; 0: not made yet
}

// words is one rank's hold on a wordSet.
type words struct {
	ends.Words
	t    *transport
	name string
	set  *wordSet
}

var _ rdma.Words = (*words)(nil)

// Words counts this rank as arrived and waits for the others. Given up, it takes
// the arrival back.
func (t *transport) Words(ctx context.Context, name string, n int) (_ rdma.Words, err error) {
	defer rdma.During(&err, "Words %s", name)
	if n < 0 {
		return nil, fmt.Errorf("%d words; expected 0 or more", n)
	}
	w := t.words(name, n)
	err = w.arrive("words "+name, t.job.all(), fmt.Sprintf("%d words", n), nil)
	if err == nil {
		if err = w.join(ctx); err == nil {
			err = ends.Adopt(&t.open, w)
		}
		if err != nil {
			w.depart()
		}
	}
	return w, err
}

func (t *transport) words(name string, n int) *words {
	w := &words{t: t, name: name}
	w.Words = ends.Words{
		Rank: t.rank, N: n, Maps: make([][]byte, t.job.size), Blocks: make([][]byte, t.job.size),
		State: t.job.state, Wake: w.ring,
	}
	return w
}

// join waits until all have arrived, and takes what they have made.
func (w *words) join(ctx context.Context) error {
	t, set := w.t, w.set
	var missing []int
	err := t.wait(ctx, func() (bool, error) {
		t.job.mu.Lock()
		defer t.job.mu.Unlock()
		missing = missing[:0]
		own := &set.parts[t.rank]
		for _, rank := range set.ranks {
			p := &set.parts[rank]
			if p.bell == 0 {
				if !t.job.view.Load().Has(rank) {
					continue
				}
				if err := rdma.Gone(t.State(rank), own.what+" "+w.name, rank); err != nil {
					return false, err
				}
				missing = append(missing, rank)
			} else if p.what != own.what {
				return false, &rdma.MismatchError{Name: w.name, Rank: rank, Ours: own.what, Theirs: p.what}
			}
		}
		return len(missing) == 0, nil
	})
	if err != nil && len(missing) > 0 {
		return fmt.Errorf("waiting for ranks %v: %w", missing, err)
	}
	if err == nil {
		for _, rank := range set.ranks {
			w.Maps[rank], w.Blocks[rank] = set.parts[rank].words, set.parts[rank].block
		}
	}
	return err
}

// arrive makes this rank's part of the set of that key, which is that of ranks.
func (w *words) arrive(key string, ranks []int, what string, block []byte) error {
	t, j := w.t, w.t.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := t.open.Check(); err != nil {
		return err
	}
	set := j.words[key]
	if set == nil {
		set = &wordSet{key: key, ranks: ranks, parts: make([]part, j.size)}
		j.words[key] = set
	}
	own := &set.parts[t.rank]
	if own.bell != 0 {
		return errors.New("another call of this rank is waiting for that name")
	}
	memory, err := heap(8 * max(w.N, 1))
	if err != nil {
		return err
	}
	w.set, w.Blocks[t.rank] = set, block
	*own = part{what, memory, block, t.bellID}
	set.here++
	if set.here == len(ranks) {
		delete(j.words, key)
	}
	for _, p := range set.parts {
		j.bells.Ring(p.bell)
	}
	return nil
}

// depart takes an arrival back, if the set did not become complete meanwhile.
func (w *words) depart() {
	j, set := w.t.job, w.set
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.words[set.key] != set {
		return
	}
	set.parts[w.t.rank] = part{}
	set.here--
	if set.here == 0 {
		delete(j.words, set.key)
	}
}

// ring is also called where the set is not complete: others may come and depart meanwhile.
func (w *words) ring() {
	j := w.t.job
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, p := range w.set.parts {
		j.bells.Ring(p.bell)
	}
}

func (w *words) Close() error {
	if w.Guard.Close(nil) {
		w.t.open.Forget(w)
	}
	return nil
}

package inmem

import (
	"context"
	"fmt"
	"slices"

	"malt/rdma"
	"malt/rdma/internal/mem"
)

// wordSet is the words of all ranks under one name. Who makes it first enters it
// into job.words; who makes it last takes it out, so that the name is free for
// the next.
type wordSet struct {
	n      int
	values [][]mem.Word // by rank
	bells  []uint64     // by rank: whom Set rings; 0 until the rank has made its own
	here   int          // how many ranks have
}

// words is one rank's hold on a wordSet.
type words struct {
	t   *transport
	set *wordSet
}

var _ rdma.Words = (*words)(nil)

// Words counts this rank as arrived and waits for the others. Given up, it takes
// the arrival back.
func (t *transport) Words(ctx context.Context, name string, n int) (rdma.Words, error) {
	op := fmt.Sprintf("inmem: Words %s", name)
	if n < 0 {
		return nil, fmt.Errorf("%s: %d words; it cannot be negative", op, n)
	}
	set, err := t.arrive(op, name, n)
	if err != nil {
		return nil, err
	}
	var missing []int
	err = t.wait(ctx, func() (bool, error) {
		t.job.mu.Lock()
		defer t.job.mu.Unlock()
		missing = missing[:0]
		for rank, b := range set.bells {
			if b != 0 {
				continue
			}
			if err := t.gone(op, rank); err != nil {
				return false, err
			}
			missing = append(missing, rank)
		}
		return len(missing) == 0, nil
	})
	w := &words{t, set}
	if err == nil {
		err = t.adopt(w)
	}
	if err != nil {
		t.depart(name, set)
		if len(missing) > 0 {
			err = fmt.Errorf("%s: waiting for ranks %v: %w", op, missing, err)
		}
		return nil, err
	}
	return w, nil
}

func (t *transport) arrive(op, name string, n int) (*wordSet, error) {
	j := t.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if err := t.check(); err != nil {
		return nil, fmt.Errorf("%s: %w", op, err)
	}
	set := j.words[name]
	if set == nil {
		set = &wordSet{n: n, values: make([][]mem.Word, j.size), bells: make([]uint64, j.size)}
		for rank := range set.values {
			set.values[rank] = make([]mem.Word, n)
		}
		j.words[name] = set
	}
	if set.n != n {
		first := slices.IndexFunc(set.bells, func(b uint64) bool { return b != 0 })
		return nil, fmt.Errorf("%s: %w", op, &rdma.MismatchError{
			Name: name, Rank: first, Ours: fmt.Sprintf("%d words", n), Theirs: fmt.Sprintf("%d words", set.n),
		})
	}
	if set.bells[t.rank] != 0 {
		return nil, fmt.Errorf("%s: another call of this rank waits for that name", op)
	}
	set.bells[t.rank] = t.bellID
	set.here++
	if set.here == j.size {
		delete(j.words, name)
		for _, b := range set.bells {
			j.ring(b)
		}
	}
	return set, nil
}

// depart takes an arrival back, if the set did not become complete meanwhile.
func (t *transport) depart(name string, set *wordSet) {
	j := t.job
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.words[name] != set {
		return
	}
	set.bells[t.rank] = 0
	set.here--
	if set.here == 0 {
		delete(j.words, name)
	}
}

// Set stores with an exchange and then rings: who sleeps has looked before it.
func (w *words) Set(i int, v uint64) {
	w.set.values[w.t.rank][i].Swap(v)
	for _, b := range w.set.bells {
		w.t.job.ring(b)
	}
}

func (w *words) Put(i int, v uint64) { w.set.values[w.t.rank][i].Store(v) }

// Get looks at the state before the word: behind a final state the word is
// final.
func (w *words) Get(rank, i int) (uint64, error) {
	if rank < 0 || rank >= w.t.job.size || i < 0 || i >= w.set.n {
		return 0, fmt.Errorf("inmem: word %d of rank %d: there are %d words of %d ranks", i, rank, w.set.n, w.t.job.size)
	}
	err := w.t.job.state(rank)
	return w.set.values[rank][i].Load(), err
}

func (w *words) Close() error {
	w.t.forget(w)
	return nil
}

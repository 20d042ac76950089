package mixed

import (
	"context"
	"errors"

	"malt/rdma"
)

// words are those of near ranks, which this one maps, and those of far ones, of
// which it has copies. This rank's own line is in both.
type words struct {
	near, far rdma.Words // until both have come about one of them can be nil
	n         int
	here      []bool // by rank: near
}

var _ rdma.Words = (*words)(nil)

// Words waits for near and far ranks at once. When one half fails the other is
// kept: others may have taken it already, and the next call of the same name
// goes on with it.
func (t *transport) Words(ctx context.Context, name string, n int) (rdma.Words, error) {
	t.mu.Lock()
	w := t.words[name]
	delete(t.words, name)
	t.mu.Unlock()
	if w != nil && w.n != n {
		if err := w.drop(); err != nil {
			return nil, err
		}
		w = nil
	}
	if w == nil {
		w = &words{n: n, here: make([]bool, t.Size())}
		for _, r := range t.Near() {
			w.here[r] = true
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	far := make(chan error, 1)
	go func() { far <- t.half(ctx, &w.far, t.far, name, n, cancel) }()
	err := worse(t.half(ctx, &w.near, t.near, name, n, cancel), <-far)
	if err != nil {
		t.mu.Lock()
		t.words[name] = w
		t.mu.Unlock()
		return nil, err
	}
	return w, nil
}

// worse is what is to be told of two errors: both, unless one is only what has
// become of the wait because of the other.
func worse(a, b error) error {
	given := func(err error) bool {
		return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
	}
	switch {
	case a == nil || b != nil && given(a) && !given(b):
		return b
	case b == nil || given(b) && !given(a):
		return a
	}
	return errors.Join(a, b)
}

// half makes one half, unless it is there, and has the other one given up where
// it fails.
func (t *transport) half(ctx context.Context, w *rdma.Words, by rdma.Transport, name string, n int, failed func()) (err error) {
	if *w == nil {
		if *w, err = by.Words(ctx, name, n); err != nil {
			*w = nil
			failed()
		}
	}
	return err
}

// drop closes what has come about.
func (w *words) drop() (err error) {
	for _, h := range []rdma.Words{w.near, w.far} {
		if h != nil {
			err = errors.Join(err, h.Close())
		}
	}
	return err
}

// Set comes to those elsewhere first: they have the longer way.
func (w *words) Set(i int, v uint64) {
	w.far.Set(i, v)
	w.near.Set(i, v)
}

func (w *words) Put(i int, v uint64) {
	w.far.Put(i, v)
	w.near.Put(i, v)
}

func (w *words) Get(rank, i int) (uint64, error) {
	if rank >= 0 && rank < len(w.here) && !w.here[rank] {
		return w.far.Get(rank, i)
	}
	return w.near.Get(rank, i)
}

func (w *words) Peek(rank, i int) uint64 {
	if !w.here[rank] {
		return w.far.Peek(rank, i)
	}
	return w.near.Peek(rank, i)
}

// Heard is about far ranks: near ones see what is stored.
func (w *words) Heard(rank int) bool { return w.far.Heard(rank) }

func (w *words) Close() error { return errors.Join(w.far.Close(), w.near.Close()) }

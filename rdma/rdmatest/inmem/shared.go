package inmem

import (
	"context"
	"fmt"

	"malt/rdma"
	"malt/rdma/internal/ends"
)

// shared is words of a host that all there may write, with a block of memory
// each.
type shared struct {
	*words
	*ends.Shared
}

var _ rdma.Shared = (*shared)(nil)

// Share counts this rank as arrived. The blocks lie on the Go heap, where the
// race detector sees who reads and writes them.
func (t *transport) Share(name string, bytes, n int) (_ rdma.Shared, err error) {
	defer rdma.During(&err, "Share %s", name)
	if bytes < 0 || n < 0 {
		return nil, fmt.Errorf("%d bytes and %d words; expected 0 or more of both", bytes, n)
	}
	block, err := heap(max(bytes, 1))
	if err != nil {
		return nil, err
	}
	w := t.words(name, n)
	s := &shared{w, (*ends.Shared)(&w.Words)}
	near := t.Near()
	if err := s.arrive(fmt.Sprintf("shared %s on the host of %d", name, near[0]), near, fmt.Sprintf("%d bytes and %d words", bytes, n), block[:bytes]); err != nil {
		return nil, err
	}
	if err := ends.Adopt(&t.open, s); err != nil {
		s.depart()
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.blocks[&block[0]] = struct{}{}
	return s, nil
}

func (s *shared) Join(ctx context.Context) (err error) {
	defer rdma.During(&err, "Share %s", s.name)
	return s.join(ctx)
}

func (s *shared) Close() error {
	if s.Guard.Close(nil) {
		s.t.open.Forget(s)
		s.depart()
	}
	return nil
}

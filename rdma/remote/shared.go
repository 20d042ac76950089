package remote

import (
	"context"
	"errors"
	"fmt"

	"malt/rdma"
	"malt/rdma/internal/ends"
	"malt/rdma/internal/mem"
)

// shared is memory and words of this rank alone.
type shared struct {
	ends.Shared
	t *Transport
}

var _ rdma.Shared = (*shared)(nil)

// Share makes it: there is nobody to wait for.
func (t *Transport) Share(name string, bytes, n int) (_ rdma.Shared, err error) {
	defer rdma.During(&err, "rank %d: Share %s", t.Rank(), name)
	if bytes < 0 || n < 0 || n > maxWords {
		return nil, fmt.Errorf("%d bytes and %d words; expected 0 or more and 0 to %d", bytes, n, maxWords)
	}
	block, err := t.Map(max(bytes, 1))
	if err != nil {
		return nil, err
	}
	s := &shared{t: t, Shared: ends.Shared{
		Rank: t.Rank(), N: n, Maps: make([][]byte, t.Size()), Blocks: make([][]byte, t.Size()), Wake: t.bell.Wake,
	}}
	s.Blocks[t.Rank()], s.Maps[t.Rank()] = block[:bytes], mem.Heap(8*max(n, 1), 64)
	if err := ends.Adopt(&t.open, s); err != nil {
		return nil, errors.Join(err, t.Unmap(block))
	}
	return s, nil
}

func (s *shared) Join(context.Context) error { return nil }

// Close leaves the block, which Unmap gives back.
func (s *shared) Close() error {
	if s.Guard.Close(nil) {
		s.t.open.Forget(s)
	}
	return nil
}

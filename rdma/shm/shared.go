package shm

import (
	"context"
	"errors"
	"fmt"

	"malt/rdma"
	"malt/rdma/internal/ends"
	"malt/rdma/internal/mem"
)

// shared is words that all may write, with a block of memory each.
type shared struct {
	*words
	*ends.Shared
}

var _ rdma.Shared = (*shared)(nil)

// maxBlock is the most that anybody could mean.
const maxBlock = 1 << 46

// Share makes and announces this rank's own part. The name belongs to one
// Shared at a time; whose is told apart by the order, as with Publish.
func (t *Transport) Share(name string, bytes, n int) (_ rdma.Shared, err error) {
	if err := t.check(); err != nil {
		return nil, err
	}
	defer rdma.During(&err, "rank %d: Share %s", t.Rank(), name)
	if bytes < 0 || bytes > maxBlock || n < 0 || n > maxWords {
		return nil, fmt.Errorf("%d bytes and %d words; expected 0 to %d and 0 to %d", bytes, n, maxBlock, maxWords)
	}
	w := t.words(name, bytes, n)
	w.Blocks = make([][]byte, t.Size())
	s := &shared{w, (*ends.Shared)(&w.Words)}
	if err := s.make(); err != nil {
		return nil, err
	}
	if err := ends.Adopt(&t.open, s); err != nil {
		s.announced.Withdraw()
		return nil, errors.Join(err, s.unmap())
	}
	t.memory.add(s.Bytes(t.Rank()))
	return s, nil
}

func (s *shared) Join(ctx context.Context) (err error) {
	defer rdma.During(&err, "rank %d: Share %s", s.t.Rank(), s.name)
	if !s.Guard.Enter() {
		return rdma.ErrClosed
	}
	defer s.Guard.Exit()
	if err := s.complete(ctx, s.t); err != nil {
		return errors.Join(err, s.unmapOthers())
	}
	return nil
}

// Close leaves this rank's own block. Who has not joined by now never will.
func (s *shared) Close() error {
	if !s.Guard.Close(nil) {
		return nil
	}
	s.t.open.Forget(s)
	s.announced.Withdraw()
	return errors.Join(s.unmapOthers(), mem.Unmap(s.own))
}

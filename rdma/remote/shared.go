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

// shared is memory and words of this rank alone.
type shared struct {
	t      *Transport
	block  []byte
	values []mem.Word
	closed atomic.Bool
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
	s := &shared{t: t, block: block[:bytes], values: make([]mem.Word, n)}
	if err := ends.Adopt(&t.open, s); err != nil {
		return nil, errors.Join(err, t.Unmap(block))
	}
	return s, nil
}

func (s *shared) Join(context.Context) error { return nil }

// Bytes is nil for other ranks.
func (s *shared) Bytes(rank int) []byte {
	if rank != s.t.Rank() {
		return nil
	}
	return s.block
}

func (s *shared) Swap(rank, i int, old, v uint64) bool {
	return rank == s.t.Rank() && s.values[i].CompareAndSwap(old, v)
}

func (s *shared) Set(i int, v uint64) { s.values[i].Swap(v) }
func (s *shared) Put(i int, v uint64) { s.values[i].Store(v) }
func (s *shared) Ring()               { s.t.bell.Wake() }

func (s *shared) Get(rank, i int) uint64 {
	if rank != s.t.Rank() {
		return 0
	}
	return s.values[i].Load()
}

// Close leaves the block, which Unmap gives back.
func (s *shared) Close() error {
	if s.closed.CompareAndSwap(false, true) {
		s.t.open.Forget(s)
	}
	return nil
}

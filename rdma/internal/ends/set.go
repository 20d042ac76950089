package ends

import (
	"context"
	"fmt"
	"io"
	"sync"

	"malt/rdma"
)

// Set is what is to be closed with a transport. The zero value is that of one
// that is open and has nothing.
type Set struct {
	mu     sync.Mutex
	open   map[io.Closer]struct{}
	closed bool
}

// Adopt has all of c closed with the transport. It fails with rdma.ErrClosed when
// that has happened already; then nothing is adopted.
func Adopt[C io.Closer](s *Set, c ...C) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return rdma.ErrClosed
	}
	if s.open == nil {
		s.open = map[io.Closer]struct{}{}
	}
	for _, c := range c {
		s.open[c] = struct{}{}
	}
	return nil
}

// Forget is for what was closed by itself.
func (s *Set) Forget(c io.Closer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, c)
}

// Check fails with rdma.ErrClosed once the transport is closed.
func (s *Set) Check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return rdma.ErrClosed
	}
	return nil
}

// Bell is what Wait waits at.
type Bell interface {
	Wait(ctx context.Context, step func() bool) error
}

// Wait is that of a rank's bell, which also ends when the transport is closed and has
// rung it.
func (s *Set) Wait(ctx context.Context, rank int, b Bell, step func() bool) error {
	var closed error
	err := b.Wait(ctx, func() bool {
		if step() {
			return true
		}
		closed = s.Check()
		return closed != nil
	})
	if closed != nil {
		err = closed
	}
	if err != nil {
		return fmt.Errorf("rank %d: %w", rank, err)
	}
	return nil
}

// Shut says that the transport is closed, and returns what its Close has to
// close, outside of any lock; not ok when somebody else has that already.
func (s *Set) Shut() (open []io.Closer, ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, false
	}
	s.closed = true
	for c := range s.open {
		open = append(open, c)
	}
	s.open = nil
	return open, true
}

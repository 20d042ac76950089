package ends

import (
	"fmt"
	"sync"
)

// Sources are the boxes of other ranks that this rank reads: each by one Inbox
// at a time, which owns the words that a reader writes.
type Sources struct {
	mu    sync.Mutex
	taken map[source]bool
}

type source struct {
	sender int
	name   string
}

// Take makes this rank a reader of the box name of each sender, of all or none.
func (s *Sources) Take(name string, senders []int) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range senders {
		if s.taken[source{r, name}] {
			return fmt.Errorf("this rank has subscribed to it at rank %d already; close that Inbox first", r)
		}
	}
	if s.taken == nil {
		s.taken = map[source]bool{}
	}
	for _, r := range senders {
		s.taken[source{r, name}] = true
	}
	return nil
}

// Free undoes Take.
func (s *Sources) Free(name string, senders ...int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range senders {
		delete(s.taken, source{r, name})
	}
}

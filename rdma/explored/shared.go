//go:build explore

package explored

import (
	"context"
	"fmt"

	"malt/rdma"
	"malt/rdma/internal/ends"
)

// Shared is blocks and words of all ranks, as each rank holds them, mapped
// already.
//
// What a rank does to blocks is plain: it happens together with the access before
// it. So that it can be seen half done, there is a turn behind each Put and Swap of the word
// with the number progress.
func (j *Job) Shared(name string, bytes, n, progress int) []rdma.Shared {
	all := make([]rdma.Shared, len(j.ranks))
	blocks := make([][]byte, len(j.ranks))
	for rank, w := range j.hold(name, n) {
		blocks[rank] = j.x.Memory(bytes)
		w.Blocks = blocks
		all[rank] = &shared{w, (*ends.Shared)(&w.Words), j.ranks[rank], progress}
	}
	j.x.Names(func(word func([]byte, string)) {
		for rank, b := range blocks {
			word(b, fmt.Sprintf("block of %d", rank))
		}
	})
	return all
}

type shared struct {
	*words
	*ends.Shared
	t        *Transport
	progress int
}

func (s *shared) Join(context.Context) error { return nil }

func (s *shared) Put(i int, v uint64) {
	s.Shared.Put(i, v)
	if i == s.progress {
		s.t.thread.Yield()
	}
}

func (s *shared) Swap(rank, i int, old, v uint64) bool {
	swapped := s.Shared.Swap(rank, i, old, v)
	if i == s.progress {
		s.t.thread.Yield()
	}
	return swapped
}

var _ rdma.Shared = (*shared)(nil)

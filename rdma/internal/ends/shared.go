package ends

import "malt/rdma/internal/mem"

// Shared is Words as those of an rdma.Shared. All ranks store them, by Swap: who stores
// what, and in which order, is the caller's. The caller also keeps Close away, so that no
// access costs more than itself. Words of a rank that has none are 0, and stay so.
type Shared Words

// Bytes and what follows implement rdma.Shared.
func (s *Shared) Bytes(rank int) []byte { return s.Blocks[rank] }

func (s *Shared) Get(rank, i int) uint64 {
	if s.Maps[rank] == nil {
		return 0
	}
	return s.word(rank, i).Load()
}

func (s *Shared) Put(i int, v uint64) {
	if s.Maps[s.Rank] != nil {
		s.word(s.Rank, i).Store(v)
	}
}

// Set is an exchange, and so a fence.
func (s *Shared) Set(i int, v uint64) {
	if s.Maps[s.Rank] != nil {
		s.word(s.Rank, i).Swap(v)
	}
}

func (s *Shared) Swap(rank, i int, old, v uint64) bool {
	return s.Maps[rank] != nil && s.word(rank, i).CompareAndSwap(old, v)
}

func (s *Shared) word(rank, i int) *mem.Word { return (*Words)(s).word(rank, i) }

func (s *Shared) Ring() { s.Wake() }

package ends

import (
	"fmt"

	"malt/rdma"
	"malt/rdma/internal/mem"
)

// Words are the words of ranks that share memory, as one of these ranks holds them, with
// blocks of bytes in a Shared. How the memory comes about is the transport's. Each rank
// alone stores its own words. A rank that dies has its last value there for ever.
type Words struct {
	Guard  mem.Guard // whoever unmaps closes it
	Rank   int
	N      int                  // words of each rank
	At     int                  // where in Maps they begin
	Maps   [][]byte             // by rank; nil: its words are elsewhere
	Blocks [][]byte             // of a Shared, by rank
	State  func(rank int) error // that of the transport
	Wake   func()               // rings all of them
}

func (w *Words) word(rank, i int) *mem.Word { return mem.WordAt(w.Maps[rank], w.At+8*i) }

// Set stores with an exchange and then rings: who sleeps has looked before it.
func (w *Words) Set(i int, v uint64) {
	if !w.Guard.Enter() {
		return
	}
	defer w.Guard.Exit()
	w.word(w.Rank, i).Swap(v)
	w.Wake()
}

// Put implements rdma.Words.
func (w *Words) Put(i int, v uint64) {
	if !w.Guard.Enter() {
		return
	}
	defer w.Guard.Exit()
	w.word(w.Rank, i).Store(v)
}

// Get looks at the state before the word: behind a final state the word is
// final. Who waits calls it again and again, so nothing is deferred.
func (w *Words) Get(rank, i int) (v uint64, err error) {
	if !w.Guard.Enter() {
		return 0, rdma.ErrClosed
	}
	if rank < 0 || rank >= len(w.Maps) || w.Maps[rank] == nil || i < 0 || i >= w.N {
		err = fmt.Errorf("word %d of rank %d; there are %d words of ranks %v", i, rank, w.N, w.ranks())
	} else {
		err = w.State(rank)
		v = w.word(rank, i).Load()
	}
	w.Guard.Exit()
	return v, err
}

// Peek implements rdma.Words.
func (w *Words) Peek(rank, i int) uint64 { return w.word(rank, i).Load() }

func (w *Words) ranks() (all []int) {
	for rank, m := range w.Maps {
		if m != nil {
			all = append(all, rank)
		}
	}
	return all
}

// Heard: what is stored can be read.
func (w *Words) Heard(int) bool { return true }

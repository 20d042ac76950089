package rdmatest

import (
	"context"
	"errors"
	"slices"
	"strings"

	"malt/rdma"
)

var sharedCases = []testCase{
	{"shared", 1, near(1, sharedMemory)},
	{"shared in turns", 2, near(2, sharedTurns)},
	{"shared given up", 2, near(2, sharedGivenUp)},
	{"shared differs", 2, near(2, sharedDiffers)},
	{"shared of the gone", 3, near(3, sharedGone)},
	{"shared by host", 1, sharedByHost},
}

// near is a test among the ranks near rank 0, which come first.
func near(least int, test func(j *job)) func(j *job) {
	return func(j *job) {
		n := len(j.ranks[0].Near())
		if n < least {
			j.Skipf("%s: %v: %d ranks are near rank 0, and it takes %d", j.ranks[0].Name(), rdma.ErrNotSupported, n, least)
		}
		test(&job{T: j.T, ctx: j.ctx, ranks: j.ranks[:n]})
	}
}

// sharedByHost: who is not near has another memory of the same name.
func sharedByHost(j *job) {
	all := j.joinShared("host", 8, 1)
	for r, s := range all {
		s.Bytes(r)[0] = byte(r) + 1
		s.Set(0, uint64(r)+1)
	}
	for r, s := range all {
		for _, peer := range j.ranks[r].Near() {
			if v := s.Get(peer, 0); v != uint64(peer)+1 || s.Bytes(peer)[0] != byte(peer)+1 {
				j.Errorf("rank %d: word %d of rank %d, block %d", r, v, peer, s.Bytes(peer)[0])
			}
		}
		for peer := range j.n() {
			if slices.Contains(j.ranks[r].Near(), peer) {
				continue
			}
			if v := s.Get(peer, 0); v != 0 {
				j.Errorf("rank %d has word %d of rank %d, which is not near", r, v, peer)
			}
			if s.Swap(peer, 0, 0, 1) || s.Bytes(peer) != nil {
				j.Errorf("rank %d writes memory of rank %d, which is not near", r, peer)
			}
		}
	}
	for r, s := range all {
		j.done(r, s)
	}
}

// makeShared is Share on one rank, which must succeed.
func (j *job) makeShared(rank int, name string, bytes, words int) rdma.Shared {
	j.Helper()
	s, err := j.ranks[rank].Share(name, bytes, words)
	if err != nil {
		j.Fatalf("rank %d: Share: %v", rank, err)
	}
	return s
}

// done closes one rank's Shared and gives its own block back.
func (j *job) done(rank int, s rdma.Shared) {
	j.Helper()
	own := s.Bytes(rank)
	if err := errors.Join(s.Close(), j.ranks[rank].Unmap(own)); err != nil {
		j.Errorf("rank %d: %v", rank, err)
	}
}

// joinShared is Share and Join on all ranks.
func (j *job) joinShared(name string, bytes, words int) []rdma.Shared {
	j.Helper()
	all := make([]rdma.Shared, j.n())
	for r := range all {
		all[r] = j.makeShared(r, name, bytes, words)
	}
	j.every(func(r int) error { return all[r].Join(j.ctx) })
	return all
}

// sharedMemory: zero at first, though what was written before Join stays; what
// one writes all see; the own block outlives Close, and the name is free again.
func sharedMemory(j *job) {
	const bytes, words = 5000, 2
	for round := range 3 {
		all := make([]rdma.Shared, j.n())
		for r := range all {
			all[r] = j.makeShared(r, "memory", bytes, words)
			own := all[r].Bytes(r)
			if len(own) != bytes {
				j.Fatalf("rank %d: block of %d bytes, expected %d", r, len(own), bytes)
			}
			for i, b := range own {
				if b != 0 {
					j.Fatalf("round %d: byte %d of rank %d is %d at first", round, i, r, b)
				}
			}
			pattern(own, r, 1)
		}
		j.every(func(r int) error { return all[r].Join(j.ctx) })
		for r, s := range all {
			for peer := range all {
				u := rdma.Update{Data: s.Bytes(peer), Stamp: rdma.Stamp{Clock: 1, Tag: uint64(peer)}}
				if err := intact(u, peer, bytes); err != nil {
					j.Errorf("rank %d: %v", r, err)
				}
				if v := s.Get(peer, 1); v != 0 {
					j.Errorf("rank %d: word of rank %d is %d at first", r, peer, v)
				}
			}
		}
		last := all[j.n()-1]
		last.Bytes(0)[7] = 42
		if !last.Swap(0, 1, 0, 5) || last.Swap(0, 1, 0, 6) {
			j.Error("a word is swapped if and only if it is the old one")
		}
		all[0].Set(0, 3)
		if v := last.Get(0, 0); v != 3 || all[0].Bytes(0)[7] != 42 {
			j.Errorf("rank 0 has set its word to %d, and has %d in its block", v, all[0].Bytes(0)[7])
		}
		if v := all[0].Get(0, 1); v != 5 {
			j.Errorf("rank 0 sees its swapped word as %d", v)
		}
		for r, s := range all {
			own := s.Bytes(r)
			if err := errors.Join(s.Close(), s.Close()); err != nil {
				j.Errorf("rank %d: closing twice: %v", r, err)
			}
			pattern(own, r, 2) // still there
			if err := j.ranks[r].Unmap(own); err != nil {
				j.Errorf("rank %d: %v", r, err)
			}
		}
	}
}

// sharedTurns: a word says whose turn it is to add one to every rank's block;
// who waits is rung, and sees what was written before the word.
func sharedTurns(j *job) {
	const rounds = 200
	all := j.joinShared("turns", 8, 1)
	turn := func(r int) uint64 { return all[r].Get(0, 0) } // counts turns
	j.every(func(r int) error {
		for round := range uint64(rounds) {
			mine := round*uint64(j.n()) + uint64(r)
			if err := j.ranks[r].Wait(j.ctx, func() bool { return turn(r) == mine }); err != nil {
				return err
			}
			for peer := range all {
				all[r].Bytes(peer)[peer%8]++
			}
			if !all[r].Swap(0, 0, mine, mine+1) {
				return errors.New("somebody else took the turn")
			}
			all[r].Ring()
		}
		return nil
	})
	for peer := range all {
		if got, want := all[0].Bytes(peer)[peer%8], byte(rounds*j.n()%256); got != want {
			j.Errorf("block of rank %d counted to %d, expected %d", peer, got, want)
		}
	}
	for r, s := range all {
		j.done(r, s)
	}
}

// sharedGivenUp: the error names who is missing, and Join can be called again.
func sharedGivenUp(j *job) {
	ctx, cancel := context.WithCancel(j.ctx)
	cancel()
	first := j.makeShared(0, "memory", 100, 1)
	for range 3 {
		if err := first.Join(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "1") {
			j.Fatalf("Join: %v; expected context.Canceled and rank 1", err)
		}
	}
	all := []rdma.Shared{first}
	for r := 1; r < j.n(); r++ {
		all = append(all, j.makeShared(r, "memory", 100, 1))
	}
	j.every(func(r int) error { return all[r].Join(j.ctx) })
	all[0].Bytes(1)[99] = 9
	if got := all[1].Bytes(1)[99]; got != 9 {
		j.Errorf("got %d", got)
	}
	for r, s := range all {
		j.done(r, s)
	}
}

func sharedDiffers(j *job) {
	all := make([]rdma.Shared, j.n())
	for r := range all {
		all[r] = j.makeShared(r, "memory", 100+min(r, 1), 1)
	}
	j.every(func(r int) error {
		var m *rdma.MismatchError
		if err := all[r].Join(j.ctx); !errors.As(err, &m) || m.Ours == m.Theirs {
			j.Errorf("rank %d: %v; expected both sizes", r, err)
		}
		return nil
	})
	for r, s := range all {
		j.done(r, s)
	}
}

// sharedGone: what one had written before it ended can still be read.
func sharedGone(j *job) {
	all := j.joinShared("memory", 10, 1)
	for r, s := range all {
		s.Bytes(r)[0] = byte(r) + 10
		s.Set(0, uint64(r)+10)
	}
	if err := j.ranks[1].Close(); err != nil {
		j.Fatal(err)
	}
	j.ranks[2].Abort(rdma.HasFailed(2, "an end"))
	for _, rank := range []int{1, 2} { // the one that has left, and the one that is dead
		if v, b := all[0].Get(rank, 0), all[0].Bytes(rank)[0]; v != uint64(rank)+10 || b != byte(rank)+10 {
			j.Errorf("of rank %d: word %d, block %d", rank, v, b)
		}
	}
	var dead *rdma.PeerError
	late := j.makeShared(0, "late", 10, 1)
	if err := late.Join(j.ctx); !errors.As(err, &dead) && !errors.Is(err, rdma.ErrLeft) {
		j.Errorf("joining the gone: %v", err)
	}
	j.done(0, late)
	for r, s := range all {
		j.done(r, s)
	}
}

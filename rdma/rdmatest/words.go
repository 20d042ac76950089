package rdmatest

import (
	"context"
	"errors"
	"strings"

	"malt/rdma"
)

var wordCases = []testCase{
	{"words", 1, wordsSetGet},
	{"words given up", 2, wordsGivenUp},
	{"words differ", 2, wordsDiffer},
	{"words of the gone", 3, wordsGone},
}

// makeWords is the collective call on all ranks.
func (j *job) makeWords(name string, n int) []rdma.Words {
	j.Helper()
	w := make([]rdma.Words, j.n())
	j.every(func(r int) (err error) {
		w[r], err = j.ranks[r].Words(j.ctx, name, n)
		return err
	})
	return w
}

// wordsSetGet: zero at first; what one sets all see; a name can be used again.
func wordsSetGet(j *job) {
	for round := range 3 {
		const n = 3
		w := j.makeWords("words", n)
		check := func(want func(rank, i int) uint64) {
			j.Helper()
			j.settle()
			for r := range w {
				for peer := range w {
					for i := range n {
						if v, err := w[r].Get(peer, i); v != want(peer, i) || err != nil {
							j.Errorf("round %d: rank %d sees word %d of %d as %d, error %v; expected %d", round, r, i, peer, v, err, want(peer, i))
						}
					}
				}
			}
		}
		check(func(int, int) uint64 { return 0 })
		value := func(rank, i int) uint64 { return uint64(rank+1)<<40 | uint64(i+1) }
		for r := range w {
			w[r].Set(0, value(r, 0))
			w[r].Put(1, value(r, 1))
			w[r].Set(2, value(r, 2))
		}
		check(value)
		for _, bad := range [][2]int{{-1, 0}, {j.n(), 0}, {0, -1}, {0, n}} {
			if _, err := w[0].Get(bad[0], bad[1]); err == nil {
				j.Errorf("there is a word %d of rank %d", bad[1], bad[0])
			}
		}
		for r := range w {
			if err := errors.Join(w[r].Close(), w[r].Close()); err != nil {
				j.Errorf("rank %d: closing twice: %v", r, err)
			}
		}
	}
}

// wordsGivenUp: the error names who is missing, and the arrival is taken back,
// so that the same call can be made again.
func wordsGivenUp(j *job) {
	ctx, cancel := context.WithCancel(j.ctx)
	cancel()
	for range 3 {
		_, err := j.ranks[0].Words(ctx, "words", 1)
		if !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "1") {
			j.Fatalf("Words: %v; expected context.Canceled and rank 1", err)
		}
	}
	w := j.makeWords("words", 1)
	w[0].Set(0, 5)
	j.settle()
	if v, err := w[1].Get(0, 0); v != 5 || err != nil {
		j.Errorf("got %d, error %v", v, err)
	}
}

func wordsDiffer(j *job) {
	errs := make([]error, j.n())
	ctx, cancel := context.WithCancel(j.ctx)
	defer cancel()
	j.every(func(r int) error {
		_, errs[r] = j.ranks[r].Words(ctx, "words", 1+min(r, 1))
		if errs[r] != nil {
			cancel() // whoever saw it: the others would wait for it
		}
		return nil
	})
	var m *rdma.MismatchError
	found := false
	for _, err := range errs {
		if err == nil {
			j.Error("a rank got words that another made differently")
		}
		found = found || errors.As(err, &m)
	}
	if !found || m.Ours == m.Theirs {
		j.Errorf("no rank was told why: %v", errs)
	}
}

// wordsGone: a word of one who has left or died is final, and says so.
func wordsGone(j *job) {
	w := j.makeWords("words", 1)
	for r := range w {
		w[r].Set(0, uint64(r)+10)
	}
	if err := j.ranks[1].Close(); err != nil {
		j.Fatal(err)
	}
	j.ranks[2].Abort(rdma.HasFailed(2, "an end"))
	j.settle()
	if v, err := w[0].Get(1, 0); v != 11 || !errors.Is(err, rdma.ErrLeft) {
		j.Errorf("of one who has left: %d, %v", v, err)
	}
	var dead *rdma.PeerError
	if v, err := w[0].Get(2, 0); v != 12 || !errors.As(err, &dead) || dead.Rank != 2 {
		j.Errorf("of one who is dead: %d, %v", v, err)
	}
}

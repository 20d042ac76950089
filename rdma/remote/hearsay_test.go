package remote

import (
	"bytes"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"

	"malt/rdma"
)

// The last word of a rank carries who died first, and which rank that one does not reach:
// to this rank, where it is one of the two, the other one is dead.
func TestLastWord(t *testing.T) {
	r, l, _, ends := alone(t)
	r.cfg.Size, r.wire = 4, nowhere{at: []string{"10.0.0.1:7"}}
	silent := errors.New("its host has not answered")
	for _, c := range []struct {
		said *rdma.PeerError
		want string
		rank int
	}{
		{rdma.HasFailed(1, "of its own"), "of its own", 1},
		{&rdma.PeerError{Rank: 2, Kind: rdma.Unreachable, Err: silent}, silent.Error(), 2},
		{&rdma.PeerError{Rank: 0, Kind: rdma.Unreachable, Err: silent}, "it considers this rank dead: its host has not answered", 1},
		{rdma.Apart(3, 2, silent), "ranks 2 and 3 cannot reach each other: rank 1, at 10.0.0.1:7, says: its host has not answered", 3},
		{rdma.Apart(0, 1, silent), "ranks 0 and 1 cannot reach each other: rank 1, at 10.0.0.1:7, says: its host has not answered", 1},
		{rdma.Apart(0, 3, silent), "ranks 0 and 3 cannot reach each other: rank 1, at 10.0.0.1:7, says: its host has not answered", 3},
		{rdma.Apart(0, 9, silent), "it considers this rank dead: its host has not answered", 1}, // of 4 ranks
		{rdma.Apart(7, 0, silent), "ranks 0 and 7 cannot", 1},
	} {
		err := l.feed(appendAborted(nil, c.said))
		var dead *rdma.PeerError
		if !errors.As(err, &dead) || dead.Rank != c.rank || !strings.HasPrefix(dead.Err.Error(), c.want) {
			t.Errorf("%v: %v; expected that rank %d is dead: %s", c.said, err, c.rank, c.want)
		}
	}
	ends()
}

// However often a peer says that a rank is dead, it is looked into once.
func TestOneWordAboutADeath(t *testing.T) {
	r, l, _, ends := alone(t)
	r.cfg.Size = 3
	r.links, r.ends = append(r.links, nil), append(r.ends, end{})
	r.addLink(2)
	h := header{kind: dead, length: maxName, id: 2, arg: 1}
	word := append(h.append(nil), make([]byte, maxName)...)
	before := runtime.NumGoroutine()
	if err := l.feed(bytes.Repeat(word, 1000)); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	if more := runtime.NumGoroutine() - before; more > 100 {
		t.Errorf("%d goroutines keep a text each", more)
	}
	l.quit()
	r.watching.Wait()
	ends()
}

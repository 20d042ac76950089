//go:build explore

package box

import (
	"testing"

	"malt/internal/explore"
	"malt/rdma"
	"malt/rdma/internal/mem"
)

// The protocols of this package in every interleaving of small cases, run by the
// real code; package explore says how. Payloads are two words that must be
// equal: between the two others have their turns, so that a torn update shows.
//

// must runs a search and prints how much there was to see.
func must(t *testing.T, o explore.Options, setup func(*explore.Exec)) {
	t.Helper()
	explore.Must(t, explore.Check(o, setup))
}

// mustFail runs a case that is known to be wrong.
func mustFail(t *testing.T, o explore.Options, setup func(*explore.Exec)) {
	t.Helper()
	r := explore.Check(o, setup)
	if r.Failure == "" {
		t.Fatalf("nothing went wrong: %v", r)
	}
	t.Logf("as expected: %s", r.Failure)
}

// small is a box of one writer and some readers in the memory of a case.
type small struct {
	layout Layout
	w      *Writer
	rs     []*Reader
	attach func(r int) *Reader // makes reader r
}

// env is the surroundings of a box: nothing happens, unless set.
type env struct {
	ring  func(bell uint64)    // bell 1 is the sender's, 2 + r that of reader r
	state func(rank int) error // rank 0 is the sender, 1 + r reader r
}

func layoutOf(spec rdma.Spec, readers int) Layout {
	spec.Bytes = 16
	l, err := NewLayout(spec, readers)
	if err != nil {
		panic(err)
	}
	return l
}

func newSmall(x *explore.Exec, l Layout, e env) *small {
	if e.ring == nil {
		e.ring = func(uint64) {}
	}
	if e.state == nil {
		e.state = func(int) error { return nil }
	}
	ctl, slots := x.Memory(l.ControlBytes), l.Flat(x.Memory(l.SlotBytes()))
	h := Header{Generation: 1, Member: 7}
	s := &small{layout: l, w: NewWriter(ctl, l, h, 1, WriterEnv{
		Slot: slots, Ring: e.ring, Gone: func(r int) bool { return e.state(1+r) != nil },
	})}
	s.attach = func(r int) *Reader {
		return NewReader(ctl, l, r, h, uint64(2+r), ReaderEnv{
			Slot: slots, Ring: e.ring, State: func() error { return e.state(0) },
		})
	}
	for r := range l.Readers {
		s.rs = append(s.rs, s.attach(r))
	}
	x.Names(func(word func([]byte, string)) { l.Names(ctl, slots, "", word) })
	return s
}

// writer is what a writer's further steps depend on: which slots were busy in
// earlier looks, and where an earlier payload was, do not matter.
func (s *small) writer() explore.Ignore {
	return explore.Ignore{State: s.w, Fields: []string{"busy", "look", "payload"}}
}

// write commits an update that holds its seq.
func (s *small) write(t *explore.Thread, clock uint64, to []int, all bool) {
	b, err := s.w.Begin()
	if err != nil {
		t.Fail("%v", err)
	}
	v := s.w.seq + 1
	mem.WordAt(b, 0).Store(v)
	mem.WordAt(b, 8).Store(v)
	s.w.Commit(16, rdma.Stamp{Clock: clock}, to, all)
}

// check reads an update, which must hold its seq.
func check(t *explore.Thread, h Header, b []byte) {
	first, second := mem.WordAt(b, 0).Load(), mem.WordAt(b, 8).Load()
	if first != second || first != h.Seq {
		t.Fail("torn: update %d holds %d and %d", h.Seq, first, second)
	}
}

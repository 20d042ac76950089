package ends

import (
	"errors"
	"io"
	"strings"
	"testing"

	"malt/rdma"
)

func TestSet(t *testing.T) {
	var s Set
	a, b := io.NopCloser(nil), io.NopCloser(strings.NewReader(""))
	if err := Adopt(&s, a, b); err != nil {
		t.Fatal(err)
	}
	s.Forget(a)
	if err := s.Check(); err != nil {
		t.Error(err)
	}
	if open, ok := s.Shut(); !ok || len(open) != 1 || open[0] != b {
		t.Errorf("%v, %v; expected the one that was not forgotten", open, ok)
	}
	if open, ok := s.Shut(); ok || len(open) > 0 {
		t.Errorf("again: %v, %v", open, ok)
	}
	if err := Adopt(&s, a); !errors.Is(err, rdma.ErrClosed) || !errors.Is(s.Check(), rdma.ErrClosed) {
		t.Errorf("when closed: %v, %v", err, s.Check())
	}
}

func TestSources(t *testing.T) {
	var s Sources
	if err := s.Take("w", []int{1, 2}); err != nil {
		t.Fatal(err)
	}
	if s.Take("w", []int{3, 2}) == nil {
		t.Error("one box was taken twice")
	}
	s.Free("w", 2)
	if err := s.Take("w", []int{3, 2}); err != nil {
		t.Errorf("what failed has taken something: %v", err)
	}
	if err := s.Take("v", []int{1}); err != nil {
		t.Error(err)
	}
}

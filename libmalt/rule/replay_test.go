package rule

import "testing"

// TestReplay: gathers come in their order, and the clocks of a reader as the sender reaches them.
func TestReplay(t *testing.T) {
	p := Replay{[]Gathered{{7, 1}, {7, 2, 1, 4, 3, 2}}, [][]uint64{nil, {2, 5, 6}, nil, nil}}
	if g, more := p.Next(); !more || g[1] != 1 || g.Of(1) != 0 {
		t.Errorf("first gather: %+v, %v", g, more)
	}
	p.Gathered()
	if g, more := p.Next(); !more || g[1] != 2 || g.Of(1) != 4 || g.Of(3) != 2 || g.Of(0) != 0 {
		t.Errorf("second gather: %+v, %v", g, more)
	}
	p.Gathered()
	p.Gathered()
	if g, more := p.Next(); more {
		t.Errorf("third gather: %+v", g)
	}
	var read []uint64
	for clock := range uint64(8) {
		if p.Reads(0, clock) {
			t.Errorf("rank 0 reads clock %d", clock)
		}
		if p.Reads(1, clock) {
			read = append(read, clock)
		}
	}
	if len(read) != 3 || read[0] != 2 || read[1] != 5 || read[2] != 6 {
		t.Errorf("rank 1 reads %v", read)
	}
	// A collective call lifts the sender's clock past what was read.
	if p := (Replay{Readers: [][]uint64{{2, 5}}}); !p.Reads(0, 5) || p.Reads(0, 6) {
		t.Error("after a jump of the clock")
	}
}

package vote

import (
	"testing"
	"time"
)

func TestQuorum(t *testing.T) {
	for _, c := range []struct {
		hosts           int
		who, dead, left []int
		want            bool
	}{
		{1, []int{0}, nil, nil, true},
		{2, []int{0}, nil, nil, false},
		{2, []int{0}, []int{1}, nil, true},
		{3, []int{0}, []int{1, 2}, nil, false},
		{3, []int{0, 2}, nil, nil, true},
		{4, []int{0, 1}, []int{2}, nil, false},
		{4, []int{0, 1}, []int{2, 3}, nil, true},
		{4, []int{0, 1, 3}, nil, nil, true},
		{130, []int{0, 129}, nil, nil, false},
		{3, []int{0}, []int{1, 2}, []int{1, 2}, true},
		{3, []int{0}, []int{1, 2}, []int{1}, true},
		{3, []int{0}, []int{1}, []int{1}, false},
		{5, []int{0, 3}, []int{1}, []int{1}, false},
		{5, []int{0, 1, 3}, []int{1}, []int{1}, false},
		{5, []int{0, 3}, []int{1, 2}, []int{1, 2}, true},
	} {
		see := Sight{Dead: SetOf(c.hosts, c.dead...), Left: SetOf(c.hosts, c.left...)}
		if got := Quorum(Everyone(c.hosts), SetOf(c.hosts, c.who...), see); got != c.want {
			t.Errorf("%v of %d hosts, with %v dead, and of these %v without a vote: %v", c.who, c.hosts, c.dead, c.left, got)
		}
	}
}

func TestBallots(t *testing.T) {
	for _, c := range []struct {
		above Ballot
		host  int
		want  Ballot
	}{{0, 0, 3}, {0, 2, 5}, {3, 0, 6}, {3, 1, 4}, {5, 0, 6}, {5, 1, 7}, {5, 2, 8}} {
		if got := c.above.After(c.host, 3); got != c.want || got.Host(3) != c.host {
			t.Errorf("host %d after %d takes ballot %d, not %d", c.host, c.above, got, c.want)
		}
	}
}

// A host that hears a suspect objects until the doubt has lasted; a suspect itself always.
func TestObjections(t *testing.T) {
	see := Sight{Dead: SetOf(4, 3), Doubted: NewSet(4), Unreachable: time.Second}
	for _, c := range []struct {
		from, host int
		suspects   []int
		lasted     time.Duration
		heard      []int
	}{
		{0, 1, []int{3}, 0, nil},
		{0, 1, []int{2, 3}, 0, []int{2}},
		{0, 1, []int{2}, 999 * time.Millisecond, []int{2}},
		{0, 1, []int{2}, time.Second, nil},
		{2, 1, []int{0}, time.Second, []int{0}},
		{2, 1, []int{0}, 2 * time.Second, nil},
		{0, 1, []int{1}, time.Hour, []int{1}},
	} {
		m := Message{Hosts: SetOf(4, c.suspects...), Lasted: c.lasted}
		if got := see.objects(m, c.from, c.host); !got.Equals(SetOf(4, c.heard...)) {
			t.Errorf("%+v: host %d hears %b", c, c.host, got)
		}
	}
}

// A doubt grows with the looks, begins again when a host was heard, and does not count the
// time in which the rank was stopped.
func TestDoubts(t *testing.T) {
	var d Doubts
	now := time.Unix(1000, 0)
	look := func(passed time.Duration, doubted ...int) {
		now = now.Add(passed)
		d.Look(now, SetOf(3, doubted...))
	}
	lasted := func(want time.Duration, hosts ...int) {
		t.Helper()
		if got := d.Lasted(SetOf(3, hosts...)); got != want {
			t.Errorf("hosts %v are doubted for %v, not %v", hosts, got, want)
		}
	}
	look(0, 1)
	look(50*time.Millisecond, 1, 2)
	look(50*time.Millisecond, 1, 2)
	lasted(100*time.Millisecond, 1)
	lasted(50*time.Millisecond, 1, 2)
	lasted(0, 0, 1)
	look(time.Hour, 1)
	lasted(300*time.Millisecond, 1)
	lasted(0, 2)
	look(50 * time.Millisecond)
	look(50*time.Millisecond, 1)
	lasted(0, 1)
}

func TestTurns(t *testing.T) {
	v := View{2, Members{Hosts: SetOf(4, 0, 2, 3), Ranks: NewSet(4)}}
	for _, c := range []struct {
		host     int
		suspects []int
		beaten   bool
		want     time.Duration
	}{{0, nil, false, 0}, {2, nil, false, apart}, {3, nil, false, 2 * apart}, {2, []int{0}, false, 0}, {0, nil, true, apart}} {
		if got := Turn(v, SetOf(4, c.suspects...), c.host, c.beaten); got != c.want {
			t.Errorf("%+v: waits %v", c, got)
		}
	}
}

// Nobody is left out for being slow: a proposal goes on once all but the suspects have
// promised, and not before.
func TestProposalWaitsForAll(t *testing.T) {
	p := Proposal{
		View: View{1, Members{Everyone(5), Everyone(5)}}, Ballot: 5, Suspects: SetOf(5, 4),
		promised: SetOf(5, 0), accepted: NewSet(5), living: SetOf(5, 0),
	}
	none := Sight{Dead: NewSet(5), Left: NewSet(5)}
	for _, from := range []int{1, 2, 3} {
		if p.Ready(none) {
			t.Fatalf("goes on before host %d has promised", from)
		}
		promise := Message{Kind: Promise, Generation: 2, Ballot: 5, Living: SetOf(5, from)}
		p.Heed(promise, from)
		p.Heed(promise, from)
	}
	if !p.Ready(none) {
		t.Fatal("does not go on when all have promised")
	}
	if m, _ := p.Accept(); !m.Members.Equals(Members{SetOf(5, 0, 1, 2, 3), SetOf(5, 0, 1, 2, 3)}) {
		t.Errorf("proposes %v", m.Members)
	}
}

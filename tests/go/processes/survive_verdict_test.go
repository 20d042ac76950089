package processes

import (
	"math/bits"
	"strings"
	"testing"

	"malt/graphs"
	"malt/libmalt"
	"malt/libmalt/reduce"
	"malt/libmalt/rule"
)

// story is what three ranks noted, of which rank 2 dies. Time passes with each note.
type story struct {
	*plan
	logs [][]event
	time int64
	last *event
}

const dying = 2

func newStory(t *testing.T, mode string, then ...collective) *story {
	t.Helper()
	r, err := rule.Parse(mode)
	if err != nil {
		t.Fatal(err)
	}
	g, err := graphs.Parse("all", 3)
	if err != nil {
		t.Fatal(err)
	}
	return &story{plan: &plan{
		ranks: 3, object: object{arrays: []libmalt.Array{{DType: libmalt.Float32, Count: 100}}},
		phases: []planPhase{{mode: r, graph: g, ops: make([][]op, 3), then: then}},
	}, logs: make([][]event, 3)}
}

// note adds the event of a rank, which ends at once, in the view of all.
func (s *story) note(rank int, e event) *event {
	s.time += 2
	e.Phase, e.Began, e.Ended, e.Seen, e.Generation, e.Members = 1, s.time, s.time+1, 1, 1, 7
	s.logs[rank] = append(s.logs[rank], e)
	return &s.logs[rank][len(s.logs[rank])-1]
}

// alone has the events of the living after now be of the view without rank 2.
func (e *event) alone() *event {
	e.Seen, e.Generation, e.Members = 2, 2, 3
	return e
}

func contents(rank int, clock uint64) uint64 { return uint64(rank)<<8 | clock }

func (s *story) scatter(rank int, clock uint64) *event {
	return s.note(rank, event{Kind: scattered, Clock: clock, To: 7 &^ (1 << rank), Exact: true, Sum: contents(rank, clock)})
}

// look has a rank gather these clocks, by sender.
func (s *story) look(rank int, clock uint64, clocks ...uint64) *event {
	e := event{Kind: looked, Clock: clock}
	for from, c := range clocks {
		if e.Folded[from] = c; c > 0 {
			e.Sums[from] = contents(from, c)
		}
	}
	return s.note(rank, e)
}

// sync has a rank average with others.
func (s *story) sync(rank int, clock uint64, with uint64) *event {
	e := event{Kind: synced, Op: int64(foldMean), Clock: clock, To: 7 &^ (1 << rank), Exact: true, Sum: contents(rank, clock)}
	var operands, weights []float64
	for _, r := range ranksOf(with | 1<<rank) {
		operands, weights = append(operands, value(r, clock)), append(weights, weight(r, clock))
	}
	e.Count = int64(bits.OnesCount64(with &^ (1 << rank)))
	e.Result.Values[0] = simulated(reduce.Mean, libmalt.Float32, operands, weights)
	e.Result.Sum = with
	return s.note(rank, e)
}

// oddInPlace has the third step combine the arrays where they lie, which leaves some elements
// of another value.
func (s *story) oddInPlace(n int64) {
	for r := range dying {
		e := &s.logs[r][2]
		e.InPlace, e.Result.Odd, e.Result.Low, e.Result.High = true, n, value(0, 3), value(dying, 3)
	}
}

// TestJudgeOfSurvivorsFinds plants each fault in a story that is all right.
func TestJudgeOfSurvivorsFinds(t *testing.T) {
	// In bsp rank 2 dies in its third step, and counts in it.
	averages := func(t *testing.T) *story {
		s := newStory(t, "bsp")
		for clock := uint64(1); clock <= 3; clock++ {
			for r := range 3 {
				s.last = s.sync(r, clock, 7)
			}
		}
		s.last.Ended = 0
		s.sync(0, 4, 3).alone()
		s.last = s.sync(1, 4, 3).alone()
		return s
	}
	steps := func(t *testing.T) *story {
		s := newStory(t, "bsp")
		for clock := uint64(1); clock <= 2; clock++ {
			for r := range 3 {
				s.last = s.scatter(r, clock)
			}
			s.look(0, clock, 0, clock, clock)
			s.look(1, clock, clock, 0, clock)
		}
		return s
	}
	newest := func(mode string) func(t *testing.T) *story {
		return func(t *testing.T) *story {
			s := newStory(t, mode)
			for clock := uint64(1); clock <= 3; clock++ {
				for r := range 3 {
					s.scatter(r, clock)
				}
				if clock == 2 {
					s.look(0, clock, 0, 2, 2)
				}
			}
			s.last = s.look(0, 3, 0, 3, 3).alone()
			return s
		}
	}
	queue := func(t *testing.T) *story {
		s := newStory(t, "notify-ack:2")
		for clock := uint64(1); clock <= 2; clock++ {
			for r := range 3 {
				s.scatter(r, clock)
			}
		}
		s.look(0, 2, 0, 1, 1)
		s.last = s.look(0, 2, 0, 2, 2).alone()
		return s
	}
	call := func(t *testing.T) *story {
		s := newStory(t, "bsp", collective{kind: allReduce, op: "sum"})
		for r := range 3 {
			s.note(r, event{Kind: called, Op: int64(configure), Call: 1})
		}
		for r := range 3 {
			e := s.note(r, event{Kind: called, Op: int64(allReduce), Call: 2, Mine: bit(r)})
			e.Result.Values[0] = 3
			if e.alone(); r == dying {
				e.Ended = 0
			}
		}
		return s
	}
	at := func(s *story, rank, n int) *event { return &s.logs[rank][n] }
	for _, c := range []struct {
		fault string
		of    func(t *testing.T) *story
		plant func(s *story)
		want  string
	}{
		{"survivors have other bits", averages, func(s *story) { at(s, 1, 2).Result.Sum++ }, "G8"},
		{"one counts the dead, one does not", averages, func(s *story) { s.logs[1][2] = *newStory(t, "bsp").sync(1, 3, 3) }, "G8"},
		{"neither counts one that had arrived", averages, func(s *story) {
			at(s, dying, 2).Ended = 100
			for r := range dying {
				s.logs[r][2] = *newStory(t, "bsp").sync(r, 3, 3)
			}
		}, "G8"},
		{"one is folded twice", averages, func(s *story) { at(s, 0, 1).Result.Values[0]++ }, "G8"},
		{"a few elements differ", averages, func(s *story) { at(s, 0, 2).Result.Odd = 3 }, "G8"},
		{"a few elements differ, in place, where a rank died", averages, func(s *story) { s.oddInPlace(3) }, ""},
		{"many do", averages, func(s *story) { s.oddInPlace(300) }, "G8"},
		{"they are not the same on all", averages, func(s *story) { s.oddInPlace(3); at(s, 1, 2).Result.Sum++ }, "G8"},
		{"an update of the step before", steps, func(s *story) { at(s, 0, 3).Folded[1] = 1 }, "G2"},
		{"the last one of the dead is dropped, in lock-step", steps, func(s *story) { at(s, 0, 3).Folded[dying] = 0 }, "G2"},
		{"one that died in a step is folded by one rank alone", steps, func(s *story) { s.last.Ended, at(s, 0, 3).Folded[dying] = 0, 0 }, "G8"},
		{"torn", steps, func(s *story) { at(s, 0, 3).Sums[1]++ }, "G3"},
		{"folded twice", newest("async"), func(s *story) { s.last.Folded[1] = 2 }, "G2"},
		{"the last one of the dead is dropped", newest("async"), func(s *story) { s.last.Folded[dying] = 0 }, "G2"},
		{"one that was never sent", newest("async"), func(s *story) { s.last.Folded[dying] = 4 }, "never sent"},
		{"sent by one that had been left out", newest("async"), func(s *story) { s.scatter(dying, 4); s.look(0, 3, 0, 0, 4).alone() }, "G9"},
		{"confirmed after it was left out", newest("async"), func(s *story) { s.note(dying, event{Kind: confirmed}) }, "G10"},
		{"out of bound", newest("ssp:0"), func(s *story) { at(s, 0, 2).Folded[1], at(s, 0, 2).Sums[1] = 1, contents(1, 1) }, "G7"},
		{"the last one of the dead is dropped, in a queue", queue, func(s *story) { s.last.Folded[dying] = 0 }, "G2"},
		{"twice, in a queue", queue, func(s *story) { s.last.Folded[1], s.last.Sums[1] = 1, contents(1, 1) }, "G2"},
		{"not acknowledged", queue, func(s *story) { s.scatter(1, 3); s.scatter(1, 4); s.scatter(1, 5) }, "has not waited"},
		{"other members in a generation", call, func(s *story) { at(s, 1, 1).Members = 2 }, "members"},
		{"one that lives is left out", newest("async"), func(s *story) { s.last.Members = 1 }, "which lives"},
		{"a generation back", call, func(s *story) { at(s, 0, 0).alone(); at(s, 0, 1).Generation = 1 }, "back to"},
		{"one that did not begin the call takes part", call, func(s *story) { s.logs[dying] = s.logs[dying][:1]; at(s, 0, 1).Result.Set = 7 }, ""},
		{"a call with another result", call, func(s *story) { at(s, 1, 1).Result.Values[0] = 7 }, "gives {[7"},
		{"a call in place counts one that had arrived", call, func(s *story) { s.callInPlace(7) }, ""},
		{"a call in place counts one twice", call, func(s *story) { s.callInPlace(9) }, "gives {[9"},
		{"a call with other ranks", call, func(s *story) {
			at(s, 1, 1).Generation, at(s, 1, 1).Members, at(s, 1, 1).Result.Values[0] = 1, 7, 7
		}, "in generation"},
		{"a call with one that had not begun it", call, func(s *story) {
			s.logs[dying] = s.logs[dying][:1]
			for r := range dying {
				at(s, r, 1).Generation, at(s, r, 1).Members, at(s, r, 1).Result.Values[0] = 1, 7, 7
			}
		}, "have begun it"},
		{"another clock after the call", call, func(s *story) { at(s, 0, 1).Clock = 5 }, "clock"},
	} {
		t.Run(c.fault, func(t *testing.T) {
			fell := []bool{dying: true}
			s := c.of(t)
			if err := judgeSurvivors(s.plan, s.logs, fell, tally{}); err != nil {
				t.Fatalf("without it: %v", err)
			}
			c.plant(s)
			err := judgeSurvivors(s.plan, s.logs, fell, tally{})
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// callInPlace has the ranks that live get this sum of their arrays.
func (s *story) callInPlace(sum float64) {
	for r := range s.logs {
		e := &s.logs[r][1]
		e.Op, e.InPlace, e.Result.Values[0] = int64(vectorAllReduce), true, sum
	}
}

// TestJudgeOfHostsThatAreGone: ranks 1 and 2 die, of which rank 1 has folded both; rank 0, which lives,
// neither. That may be where no rank of rank 1's host lives.
func TestJudgeOfHostsThatAreGone(t *testing.T) {
	for _, c := range []struct {
		places []int
		want   string
	}{{[]int{0, 1, 1}, ""}, {[]int{0, 1, 2}, ""}, {[]int{0, 0, 1}, "G8"}} {
		s := newStory(t, "bsp")
		s.weather = &weather{hosts: 3, places: c.places}
		s.sync(1, 1, 7)
		s.sync(2, 1, 7).Ended = 0
		e := s.sync(0, 1, 1)
		e.Generation, e.Members = 2, 1
		err := judgeSurvivors(s.plan, s.logs, []bool{false, true, true}, tally{})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("ranks on hosts %v: got %v, want %q", c.places, err, c.want)
		}
	}
}

// TestJudgeOfTheNextPhase: rank 1 has folded what rank 2 sent as it died, and dies before it reaches the
// call that ends the phase. Rank 0 comes to the same clock in the next phase, alone.
func TestJudgeOfTheNextPhase(t *testing.T) {
	s := newStory(t, "bsp")
	s.phases = append(s.phases, s.phases[0])
	s.sync(1, 1, 7&^1)
	s.sync(2, 1, 7&^1).Ended = 0
	e := s.sync(0, 1, 1)
	e.Phase, e.Generation, e.Members = 2, 2, 1
	if err := judgeSurvivors(s.plan, s.logs, []bool{false, true, true}, tally{}); err != nil {
		t.Error(err)
	}
}

package butterfly

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"malt/graphs"
	"malt/internal/transcripttest"
	"malt/libmalt/engine"
)

// TestTranscript replays what one rank decides. Lines behind ">" say what happens, those below
// what it does:
//
//	> butterfly:2x2 is 0           a new rank 0 of four
//	> scatters 1                   at clock 1
//	> 2 in 2: 1 3/2 4@3            a sum of rank 2 has come in stage 2: the changes of each rank up to
//	                               that clock, of as many scatters, or of that many; nothing is missing
//	                               before that collective call; left2: no more come, since rank 2 has left
//	> gathers 4, slack 1           what the gather waits for
//	> away 1 3, gone 2             from here on: not waited for, and left
//	> call 3: 1                    rank 1 is in that collective call
//	> left 1 in 1                  the last of rank 1, which has left, had come in stage 1
//	> levelled 4                   by a collective call
//	> closes, renew 5              the vector; a new era at that clock
func TestTranscript(t *testing.T) {
	var a actor
	transcripttest.Play(t, "testdata/core.txt", func(to *strings.Builder, said string) { a.play(t, to, said) })
}

// TestWay: each rank on the way of changes is in a group of the next, and the last one is where they begin.
func TestWay(t *testing.T) {
	for _, spec := range []string{"2x2", "4x2", "2x3", "3x2", "2x3x2", "5"} {
		size := 1
		for f := range strings.SplitSeq(spec, "x") {
			n, _ := strconv.Atoi(f)
			size *= n
		}
		g, err := graphs.Parse("butterfly:"+spec, size)
		if err != nil {
			t.Fatal(err)
		}
		for to := range size {
			for r := range size {
				at, c := to, NewCore(g, to)
				way := slices.DeleteFunc(c.Way(nil, r), func(r int) bool { return r == to })
				if len(way) > 0 && c.through(r) != way[0] {
					t.Errorf("%s: changes of %d come to %d through %d, on the way %v", spec, r, to, c.through(r), way)
				}
				for _, from := range way {
					if from != at && !slices.ContainsFunc(g.Stages(at), func(s graphs.Stage) bool { return slices.Contains(s.Group, from) }) {
						t.Errorf("%s: from %d to %d by %v: %d does not send to %d", spec, r, to, way, from, at)
					}
					at = from
				}
				if at != r {
					t.Errorf("%s: from %d to %d by %v", spec, r, to, way)
				}
			}
		}
	}
}

type actor struct {
	c          *Core
	away, gone []int
	call       uint64 // in which those are that are away
}

func (a *actor) until(r int) uint64 {
	if slices.Contains(a.away, r) {
		return a.call
	}
	return engine.Here
}

func (a *actor) play(t *testing.T, to *strings.Builder, said string) {
	t.Helper()
	words := strings.FieldsFunc(said, func(r rune) bool { return strings.ContainsRune(" :,", r) })
	number := func(word string) uint64 {
		if word == "closed" {
			return closed
		}
		left, lost := strings.CutPrefix(word, "left")
		n, err := strconv.ParseUint(left, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if lost {
			n += over
		}
		return n
	}
	ranks := func(words []string) (list []int) {
		for _, w := range words {
			list = append(list, int(number(w)))
		}
		return list
	}
	switch {
	case strings.HasPrefix(said, "butterfly"):
		spec, rank, _ := strings.Cut(said, " is ")
		size := 1
		for f := range strings.SplitSeq(strings.TrimPrefix(spec, "butterfly:"), "x") {
			size *= int(number(f))
		}
		g, err := graphs.Parse(spec, size)
		if err != nil {
			t.Fatal(err)
		}
		*a = actor{c: NewCore(g, int(number(rank)))}
		return
	case words[0] == "scatters":
		a.c.Scattered(number(words[1]))
	case words[0] == "levelled":
		a.c.Lifted(number(words[1]))
	case words[0] == "closes":
		a.c.Lifted(closed)
	case words[0] == "renew":
		a.c.Renew(number(words[1]))
	case words[0] == "left":
		a.c.cut(int(number(words[3]))-1, int(number(words[1])))
	case words[0] == "away":
		a.away, a.call = ranks(words[1:]), 0
	case words[0] == "call":
		a.away, a.call = ranks(words[2:]), number(words[1])
	case words[0] == "gone":
		a.gone = ranks(words[1:])
	case words[0] == "gathers":
		clock := number(words[1])
		late := a.c.Late(nil, clock-min(clock, number(words[3])), a.until)
		if lost, through := a.c.Lost(); len(lost) > 0 {
			fmt.Fprintf(to, "fails: changes of %v come no more through %d\n", lost, through)
		} else if len(late) > 0 {
			fmt.Fprintf(to, "waits for %v\n", late)
		} else {
			fmt.Fprintf(to, "has %s, age %d, changes of %d\n", reaches(a.c.has), a.c.Age(clock, a.until), a.c.Gathered())
		}
		return
	case words[0] == "leaves":
		if needed := a.c.Needed(nil, func(r int) bool { return slices.Contains(a.gone, r) }); len(needed) > 0 {
			fmt.Fprintf(to, "serves %v\n", needed)
		} else {
			to.WriteString("leaves\n")
		}
		return
	default:
		var sum []reach
		for _, w := range words[3:] {
			w, call, known := strings.Cut(w, "@")
			clock, scatters, counted := strings.Cut(w, "/")
			if !counted {
				scatters = clock
			}
			if !known {
				call = "0"
			}
			sum = append(sum, reach{Clock: number(clock), Scatters: number(scatters), Call: number(call)})
		}
		if err := a.c.take(int(number(words[2]))-1, int(number(words[0])), sum); err != nil {
			fmt.Fprintf(to, "%v\n", err)
		}
	}
	a.c.waited(a.until(a.c.rank))
	for i := range a.c.stages {
		if a.c.due(i, a.until) {
			a.c.published(i)
			fmt.Fprintf(to, "publishes stage %d to %v: %s\n", i+1, a.c.others(i), reaches(a.c.of(i, a.c.rank)))
		}
	}
}

func reaches(list []reach) string {
	words := make([]string, len(list))
	for i, at := range list {
		switch {
		case at.Clock == closed:
			words[i] = "closed"
		case at.Clock >= over:
			words[i] = fmt.Sprintf("left%d", at.Clock-over)
		default:
			words[i] = fmt.Sprint(at.Clock)
		}
		if at.Scatters != at.Clock {
			words[i] += fmt.Sprintf("/%d", at.Scatters)
		}
		if at.Call > 0 {
			words[i] += fmt.Sprintf("@%d", at.Call)
		}
	}
	return strings.Join(words, " ")
}

package shards

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"malt/internal/transcripttest"
	"malt/libmalt/engine"
)

// TestTranscript replays what one rank decides. Lines behind ">" say what happens, those below
// what it does:
//
//	> shards:2 of 3 is 0           a new rank 0 of three, of which two keep a part
//	> shards:1 of 3 is 1, on 0     one that passes the sum of part 0 on to ranks of higher numbers
//	> scatters 1                   at clock 1
//	> cut 0                        the sum of part 0 comes no more: a rank has left that passed it on
//	> taken 0                      the keeper of part 0 has the last push of this rank
//	> push of 2: 1                 has come, for the part that this rank keeps; of as many scatters
//	> push of 2: 4 of 3            or of that many
//	> more of 2: 3                 its clock is 3, and not all has been pushed
//	> sum of 1: 1 1@3 0            of part 1, with these clocks; of rank 1 nothing is missing before call 3
//	> gathers 4, slack 1           what the gather waits for
//	> away 1, gone 2               from here on: not waited for, and left
//	> in 3: 1                      rank 1 is in that collective call
//	> newest 0, lacks 2            the clock of the changes in part 0; the parts that have the fewest of rank 2
//	> levelled 4                   by a collective call
//	> closes, renew 5              the vector; a new era at that clock
func TestTranscript(t *testing.T) {
	var a actor
	transcripttest.Play(t, "testdata/core.txt", func(to *strings.Builder, said string) { a.play(t, to, said) })
}

type actor struct {
	c          *Core
	away, gone []int
	call       uint64 // in which those are that are away
	taken      []int
}

func (a *actor) until(r int) uint64 {
	if slices.Contains(a.away, r) {
		return a.call
	}
	return engine.Here
}

func (a *actor) play(t *testing.T, to *strings.Builder, said string) {
	t.Helper()
	var numbers, calls []uint64
	for _, word := range strings.FieldsFunc(said, func(r rune) bool { return strings.ContainsRune(" :,", r) }) {
		word, call, _ := strings.Cut(word, "@")
		if word == "closed" {
			numbers = append(numbers, closed)
		} else if n, err := strconv.ParseUint(word, 10, 64); err == nil {
			numbers = append(numbers, n)
		}
		n, _ := strconv.ParseUint(call, 10, 64)
		calls = append(calls, n)
	}
	ranks := func() (list []int) {
		for _, n := range numbers {
			list = append(list, int(n))
		}
		return list
	}
	told := func(err error) {
		if err != nil {
			fmt.Fprintln(to, err)
		}
	}
	switch what, _, _ := strings.Cut(said, " "); what {
	case "scatters":
		a.c.Scattered(numbers[0])
	case "push":
		now := at(numbers[1])[0]
		if len(numbers) > 2 {
			now.Scatters = numbers[2]
		}
		told(a.c.add(int(numbers[0]), now))
	case "more":
		a.c.more(int(numbers[0]), numbers[1], a.until(int(numbers[0])))
	case "sum":
		sum := at(numbers[1:]...)
		for r := range sum {
			sum[r].Call = calls[len(calls)-len(sum)+r]
		}
		told(a.c.take(int(numbers[0]), sum))
	case "levelled":
		a.c.Lifted(numbers[0])
	case "closes":
		a.c.Lifted(closed)
	case "renew":
		a.c.Renew(numbers[0])
	case "cut":
		a.c.cut(int(numbers[0]))
	case "taken":
		a.taken = ranks()
	case "away":
		a.away, a.call = ranks(), 0
	case "in":
		a.away, a.call = ranks()[1:], numbers[0]
	case "gone":
		a.gone = ranks()
	case "gathers":
		late := a.c.Late(nil, numbers[0]-min(numbers[0], numbers[1]), a.until)
		if len(late) > 0 {
			fmt.Fprintf(to, "waits for %v\n", late)
		} else {
			fmt.Fprintf(to, "goes on, age %d, changes of %d\n", a.c.Age(numbers[0], a.until), a.c.Gathered())
		}
		return
	case "newest":
		fmt.Fprintf(to, "%d\n", a.c.newest(int(numbers[0])))
		return
	case "lacks":
		for q := range a.c.parts {
			if a.c.lacks(q, int(numbers[0])) {
				fmt.Fprintf(to, "part %d\n", q)
			}
		}
		return
	case "leaves":
		if needed := a.c.Needed(nil, func(r int) bool { return slices.Contains(a.gone, r) }); len(needed) > 0 {
			fmt.Fprintf(to, "needed by %v\n", needed)
		} else {
			to.WriteString("leaves\n")
		}
		return
	default:
		below, rank := make([][]int, numbers[0]), int(numbers[2])
		for r := range int(numbers[1]) {
			for _, q := range numbers[3:] {
				if r > rank {
					below[q] = append(below[q], r)
				}
			}
			if r != rank && rank < len(below) {
				below[rank] = append(below[rank], r)
			}
		}
		*a = actor{c: NewCore(rank, int(numbers[1]), below)}
		return
	}
	for q := range a.c.parts {
		switch push, more := a.c.toPush(q, slices.Contains(a.taken, q)); {
		case push && q == a.c.rank:
			told(a.c.pushed(q))
			fmt.Fprintf(to, "adds its own changes up to %s\n", clocks(a.c.own))
		case push:
			a.taken = nil
			fmt.Fprintf(to, "pushes to %d up to %s%s\n", q, clocks(a.c.own), map[bool]string{true: ", late"}[a.c.parts[q].late])
			told(a.c.pushed(q))
		case more:
			a.c.waits(q)
			fmt.Fprintf(to, "tells %d of more up to %s\n", q, clocks(a.c.own))
		}
		if q == a.c.rank {
			a.c.more(q, a.c.own.Clock, a.until(q))
		}
		if a.c.due(q, a.until) {
			a.c.published(q)
			what := "publishes"
			if q != a.c.rank {
				what = "passes on"
			}
			fmt.Fprintf(to, "%s %s\n", what, clocks(a.c.parts[q].has...))
		}
	}
}

// at is a rank that has scattered at each clock, or has closed the vector after nine scatters.
func at(clocks ...uint64) (list []reach) {
	for _, clock := range clocks {
		if clock == closed {
			list = append(list, reach{Clock: closed, Scatters: 9})
		} else {
			list = append(list, reach{Clock: clock, Scatters: clock})
		}
	}
	return list
}

func clocks(list ...reach) string {
	words := make([]string, len(list))
	for i, at := range list {
		if words[i] = fmt.Sprint(at.Clock); at.Clock == closed {
			words[i] = "closed"
		} else if at.Scatters != at.Clock {
			words[i] += fmt.Sprintf("/%d", at.Scatters)
		}
		if at.Call > 0 {
			words[i] += fmt.Sprintf("@%d", at.Call)
		}
	}
	return strings.Join(words, " ")
}

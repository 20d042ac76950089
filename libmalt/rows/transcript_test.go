package rows

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"malt/graphs"
	"malt/internal/transcripttest"
	"malt/rdma"
)

// TestTranscript replays plans and courses. Lines behind ">" say what happens, those below what
// comes of it:
//
//	> plan butterfly:2x2: 1 2 2, wants 9 / 3 / -, wants 3 / 1     the ids of each rank
//	> call 7, round 1: 1 gives 10 gets 6, 2 gives 0 gets ?        a round with ranks 1 and 2
//	> 1: 6 of 6 at 0, call 7, round 1                             a message of 6 bytes has come from 1
//	> took 1                                                      it is done with
func TestTranscript(t *testing.T) {
	course := &Course{chunk: 4}
	transcripttest.Play(t, "testdata/core.txt", func(to *strings.Builder, said string) {
		if rest, plan := strings.CutPrefix(said, "plan "); plan {
			playPlan(t, to, rest)
		} else {
			playCourse(t, to, course, said)
		}
	})
}

func number(t *testing.T, word string) int {
	t.Helper()
	n, err := strconv.Atoi(word)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// inWords is a set by its ids, in the order of their mixed values, and how many rows each has.
func inWords(s set) string {
	var words []string
	for i, mixed := range s.ids {
		for id := range uint64(100) {
			if mix(id) == mixed {
				words = append(words, fmt.Sprint(id))
			}
		}
		if s.counts != nil && s.counts[i] > 1 {
			words[i] += fmt.Sprintf("(%d)", s.counts[i])
		}
	}
	if words == nil {
		return "-"
	}
	return strings.Join(words, " ")
}

func playPlan(t *testing.T, to *strings.Builder, said string) {
	t.Helper()
	spec, rest, _ := strings.Cut(said, ": ")
	ranks := strings.Split(rest, " / ")
	g, err := graphs.Parse(spec, len(ranks))
	if err != nil {
		t.Fatal(err)
	}
	ids := func(text string) (list []uint64) {
		for _, w := range strings.Fields(strings.ReplaceAll(text, "-", "")) {
			list = append(list, uint64(number(t, w)))
		}
		return list
	}
	plans := make([]*Plan, len(ranks))
	for r, text := range ranks {
		has, wants, asks := strings.Cut(text, ", wants ")
		if !asks {
			wants = has
		}
		plans[r] = NewPlan(g.Stages(r), r, ids(has), ids(wants))
	}
	for stage := range g.Stages(0) {
		lists := make([][][]byte, len(plans)) // by receiver and member
		for r, p := range plans {
			s := p.stages[stage]
			for j, m := range s.group {
				lists[m] = append(lists[m], make([][]byte, len(s.group)-len(lists[m]))...)
				lists[m][s.own] = p.List(j)
				if holds, wants := p.part(j); m != r && len(holds.ids)+len(wants.ids) > 0 {
					fmt.Fprintf(to, "stage %d: %d gives %d %s, asks for %s\n", stage+1, r, m, inWords(holds), inWords(wants))
				}
			}
		}
		for r, p := range plans {
			if err := p.Take(lists[r]); err != nil {
				t.Fatal(err)
			}
		}
	}
	for r, p := range plans {
		fmt.Fprintf(to, "%d: rows at %d", r, p.in)
		for _, s := range p.stages {
			fmt.Fprintf(to, "; adds %d, sends %d", s.adds, s.sends)
		}
		fmt.Fprintf(to, "; finds %d of %d; wanted at %d; room for %d of %d\n", p.found, p.counts, p.out, p.rows, p.most)
	}
}

func playCourse(t *testing.T, to *strings.Builder, c *Course, said string) {
	t.Helper()
	place := func(word string) int {
		return slices.IndexFunc(c.peers, func(p peer) bool { return p.rank == number(t, word) })
	}
	words := strings.FieldsFunc(said, func(r rune) bool { return strings.ContainsRune(" :,", r) })
	switch words[0] {
	case "call":
		var peers []peer
		for w := words[4:]; len(w) > 0; w = w[5:] {
			p := peer{rank: number(t, w[0]), to: number(t, w[2]), from: unknown}
			if w[4] != "?" {
				p.from = number(t, w[4])
			}
			peers = append(peers, p)
		}
		c.enter(uint64(number(t, words[1])), uint16(number(t, words[3])), peers)
		for i := range c.peers {
			for n, s := c.next(i); n > 0; n, s = c.next(i) {
				fmt.Fprintf(to, "to %d: %d of %d at %d\n", c.peers[i].rank, n, s.Age, s.Tag)
				c.peers[i].sent += n
			}
		}
	case "took":
		c.took(place(words[1]))
	default:
		stamp := rdma.Stamp{Age: uint64(number(t, words[3])), Tag: uint64(number(t, words[5])), Clock: uint64(number(t, words[7])), Kind: uint16(number(t, words[9]))}
		what, err := c.judge(place(words[0]), stamp, number(t, words[1]))
		if err != nil {
			fmt.Fprintln(to, err)
		} else {
			fmt.Fprintln(to, map[verdict]string{keep: "is kept for later", drop: "is dropped", take: "is taken"}[what])
		}
	}
	if late := c.late(nil); len(late) > 0 {
		fmt.Fprintf(to, "waits for %d\n", late)
	} else {
		fmt.Fprintf(to, "over: %v\n", c.over())
	}
}

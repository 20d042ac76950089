package rule

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"malt/internal/transcripttest"
	"malt/rdma"
)

// TestTranscript replays what the rules decide. Lines behind ">" ask, those below answer:
//
//	> ssp:2 scatters 3                 a rank has scattered so many times since its last gather
//	> ssp:2 at 5: 3 2 2-away 2-dead    a gather at clock 5 sees ranks at these clocks
func TestTranscript(t *testing.T) {
	transcripttest.Play(t, "testdata/rules.txt", func(to *strings.Builder, question string) {
		answer(t, to, strings.Fields(question))
	})
}

func answer(t *testing.T, to *strings.Builder, words []string) {
	t.Helper()
	r, err := Parse(words[0])
	if err != nil {
		t.Fatal(err)
	}
	number := func(s string) uint64 {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	if words[1] == "scatters" {
		n := number(words[2])
		fmt.Fprintf(to, "may scatter: %t; may gather: %t\n", r.MayScatter(n), r.MayGather(n))
		return
	}
	mode := r.Boxes()
	keeps := fmt.Sprintf("up to %d updates", mode.Depth())
	switch mode {
	case rdma.Newest:
		keeps = "the newest update"
	case rdma.ByClock:
		keeps = "updates by clock"
	}
	fmt.Fprintf(to, "boxes keep %s\n", keeps)
	own := number(strings.TrimSuffix(words[2], ":"))
	for _, word := range words[3:] {
		at, what, _ := strings.Cut(word, "-")
		clock, standing := number(at), map[string]Standing{"": Present, "away": Away, "dead": Dead}[what]
		verdict := "goes on"
		if r.Waits(own, clock) {
			verdict = [...]string{Wait: "waits", Without: "goes on without it", Fail: "fails"}[About(standing)]
		}
		fold := "would not fold"
		if r.Takes(own, clock) {
			fold = "may fold"
		}
		fmt.Fprintf(to, "%-7s %s; %s its update of clock %d\n", word, verdict, fold, clock)
	}
}

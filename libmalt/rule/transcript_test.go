package rule

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"malt/rdma"
)

var rewrite = flag.Bool("rewrite", false, "write the transcript anew; read the difference before it is committed")

const transcript = "testdata/rules.txt"

// TestTranscript replays what the rules decide. Lines behind ">" ask, those below answer:
//
//	> ssp:2 scatters 3                 a rank has scattered so many times since its last gather
//	> ssp:2 at 5: 3 2 2-away 2-dead    a gather at clock 5 sees ranks at these clocks
func TestTranscript(t *testing.T) {
	want, err := os.ReadFile(transcript)
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for line := range strings.Lines(string(want)) {
		question, asked := strings.CutPrefix(line, "> ")
		if asked || strings.HasPrefix(line, "#") || line == "\n" {
			got.WriteString(line)
		}
		if asked {
			answer(t, &got, strings.Fields(question))
		}
	}
	if *rewrite {
		err = os.WriteFile(transcript, []byte(got.String()), 0o600)
	}
	if err != nil || !*rewrite && got.String() != string(want) {
		t.Errorf("%v; with -rewrite %s becomes\n%s", err, transcript, &got)
	}
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

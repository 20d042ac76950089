package graphs

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares with a file of testdata.
func golden(t *testing.T, file, got string) {
	t.Helper()
	path := filepath.Join("testdata", file)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; look at it and run the test with -update if it is better now. Got:\n%s", path, got)
	}
}

func parse(t testing.TB, spec string, size int) *Graph {
	t.Helper()
	g, err := Parse(spec, size)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func measure(t testing.TB, g *Graph) Measures {
	t.Helper()
	m, err := g.Measure()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// everywhere are the specs that must work for every number of ranks.
func everywhere() []string {
	return []string{"all", "ring", "chord", "halton", "halton-paper", "star", "butterfly", "shards", "shards:1", "one-peer"}
}

// specs are all specs that make sense for a size, those with arguments too.
func specs(size int) []string {
	all := everywhere()
	if size&(size-1) == 0 {
		all = append(all, "hypercube")
	}
	for _, k := range []string{"1", "2:7", "3", "5:99"} {
		if size == 1 || int(k[0]-'0') < size {
			all = append(all, "random:"+k)
		}
	}
	oneWay := make([]string, size) // every rank to the next, the last to nobody
	for rank := range size - 1 {
		oneWay[rank] = strconv.Itoa(rank + 1)
	}
	return append(all, "lists:"+strings.Join(oneWay, "/"))
}

func sorted(list []int) []int {
	list = slices.Clone(list)
	slices.Sort(list)
	return list
}

// wantError checks that there is an error that says certain things.
func wantError(t *testing.T, err error, parts ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("no error; want one that says %q", parts)
		return
	}
	for _, part := range parts {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("error %q does not say %q", err, part)
		}
	}
}

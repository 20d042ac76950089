package graphs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/quick"
)

func TestLists(t *testing.T) {
	for _, c := range []struct {
		spec      string
		size      int
		canonical string
	}{
		{"lists:", 1, "lists:"},
		{"lists:/", 2, "lists:/"},
		{"lists:1/0", 2, "lists:1/0"},
		{"lists:3,1,2//0/", 4, "lists:3,1,2//0/"},
		{"lists:01/+0", 2, "lists:1/0"},
	} {
		if got := parse(t, c.spec, c.size).String(); got != c.canonical {
			t.Errorf("%s is called %s, want %s", c.spec, got, c.canonical)
		}
	}
}

func TestListErrors(t *testing.T) {
	for _, c := range []struct {
		spec  string
		size  int
		parts []string
	}{
		{"lists:1/2", 2, []string{"rank 1 sends to rank 2", "does not exist", "Ranks are 0 to 1"}},
		{"lists:1/-1", 2, []string{"rank 1 sends to rank -1", "does not exist"}},
		{"lists:1/1", 2, []string{"rank 1 sends to itself", "Leave 1 out"}},
		{"lists:1,2,1/0/0", 3, []string{"rank 0 sends to rank 1 twice"}},
		{"lists:1/0", 3, []string{"2 lists for 3 ranks"}},
		{"lists:1/0/1/", 3, []string{"4 lists for 3 ranks"}},
		{"lists:1/a", 2, []string{"rank 1", `"a" is not a rank`}},
		{"lists:1,/0", 2, []string{"rank 0", `"" is not a rank`}},
		{"lists:1 /0", 2, []string{`"1 " is not a rank`}},
		{"lists:1.0/0", 2, []string{`"1.0"`}},
		{"lists:99999999999999999999/0", 2, []string{`"99999999999999999999"`}},
	} {
		_, err := Parse(c.spec, c.size)
		wantError(t, err, c.parts...)
	}
	_, err := FromLists(nil)
	wantError(t, err, "size 0")
	_, err = FromLists(make([][]int, MaxSize+1))
	wantError(t, err, "size 32769")
	_, err = FromLists([][]int{{1}, {2}})
	wantError(t, err, "rank 1 sends to rank 2")
}

func TestFromListsCopies(t *testing.T) {
	lists := [][]int{{2, 1}, {2}, {0}}
	g, err := FromLists(lists)
	if err != nil {
		t.Fatal(err)
	}
	lists[0][0], lists[2] = 0, nil
	if got := g.Receivers(0, 1); !slices.Equal(got, []int{2, 1}) {
		t.Errorf("a later write to the lists changed the graph: %v", got)
	}
	if got := g.String(); got != "lists:2,1/2/0" {
		t.Errorf("String is %s", got)
	}
}

// Any lists come back from the graph as they were, and through its spec.
func TestListsRoundTrip(t *testing.T) {
	property := func(seed uint64) bool {
		lists := randomLists(seed)
		g, err := FromLists(lists)
		if err != nil {
			t.Error(err)
			return false
		}
		for rank, list := range lists {
			if !slices.Equal(g.Receivers(rank, 1), list) {
				return false
			}
		}
		checkSpec(t, g)
		return true
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 500}); err != nil {
		t.Error(err)
	}
}

// A wrong entry anywhere in good lists is found and named.
func TestWrongEntryIsNamed(t *testing.T) {
	property := func(seed uint64) bool {
		lists := randomLists(seed)
		rng := rand.New(rand.NewPCG(seed, 1))
		rank := rng.IntN(len(lists))
		wrong := []int{-1, len(lists), rank, 1 << 40}
		if list := lists[rank]; len(list) > 0 {
			wrong = append(wrong, list[rng.IntN(len(list))])
		}
		entry := wrong[rng.IntN(len(wrong))]
		lists[rank] = append(lists[rank], entry)
		_, err := FromLists(lists)
		return err != nil && strings.Contains(err.Error(), fmt.Sprintf("rank %d sends to", rank)) &&
			(entry == rank || strings.Contains(err.Error(), fmt.Sprintf("to rank %d", entry)))
	}
	if err := quick.Check(property, &quick.Config{MaxCount: 500}); err != nil {
		t.Error(err)
	}
}

// randomLists makes valid lists of 1 to 12 ranks, sparse or dense.
func randomLists(seed uint64) [][]int {
	rng := rand.New(rand.NewPCG(seed, 0))
	lists := make([][]int, 1+rng.IntN(12))
	density := rng.Float64()
	for rank := range lists {
		for _, to := range rng.Perm(len(lists)) {
			if to != rank && rng.Float64() < density {
				lists[rank] = append(lists[rank], to)
			}
		}
	}
	return lists
}

//go:build explore

package vote

import (
	"malt/internal/explore"
	"strings"
	"testing"
)

// pair is whom the two proposers of a case leave out: each the other one, or the third host.
var pair = [][]int{{0b010, 0b100}, {0b001, 0b100}, {}}

// Votes end with one view of each generation, whoever proposes, promises, accepts, dies and
// is told of it, in whatever order.
func TestExploreVotes(t *testing.T) {
	explored(t, []named{
		{"two hosts", false, game{hosts: 2, ballots: []int{2, 2}, generations: 2, kills: 1}},
		{"two generations", false, game{hosts: 2, ballots: []int{2, 2}, generations: 3, kills: 1}},
		{"three hosts", false, game{hosts: 3, ballots: []int{1, 1, 0}, suspects: pair, generations: 2, kills: 2}},
		{"a host without ranks", false, game{hosts: 3, ballots: []int{1, 1, 0}, suspects: pair, generations: 2, kills: 1, rankless: true}},
		{"refusals that lie", false, game{hosts: 3, ballots: []int{1, 1, 0}, suspects: [][]int{{0b010}, {0b001}, {}}, generations: 2, lies: 2}},
		{"one is left", false, game{hosts: 3, ballots: []int{1, 0, 1}, suspects: [][]int{{0b100}, {}, {0b011}}, generations: 2, kills: 2}},
		{"late answers", false, game{hosts: 2, ballots: []int{2, 1}, generations: 3, kills: 1, late: true}},
		{"three ballots", false, game{hosts: 3, ballots: []int{2, 1, 0}, suspects: [][]int{{0b100, 0b010}, {0b001}, {}}, generations: 2, late: true}},
		{"one leaves", false, game{hosts: 3, ballots: []int{1, 0, 1}, suspects: [][]int{{0b100}, {}, {0b011}}, generations: 2, kills: 1, leaves: []int{0, 1}}},
		{"two leave", false, game{hosts: 3, ballots: []int{1, 1, 1}, suspects: [][]int{{0}, {0}, {0b011}}, generations: 2, leaves: []int{0, 1}}},
		{"one leaves, two generations", true, game{hosts: 3, ballots: []int{1, 1, 0}, suspects: pair, generations: 3, kills: 1, leaves: []int{2}}},
		{"two of five promise and leave", false, game{hosts: 5, ballots: []int{1, 0, 0, 0, 1}, suspects: [][]int{{0b10000}, {}, {}, {}, {0b01001}}, generations: 2, promise: []int{1, 2}}},
		{"three ballots of three hosts", true, game{hosts: 3, ballots: []int{1, 1, 1}, suspects: [][]int{{0b100}, {0b001}, {0b010}}, generations: 2, kills: 1}},
		{"four hosts", true, game{hosts: 4, ballots: []int{1, 1, 0, 0}, suspects: [][]int{{0b1100}, {0b0001}, {}, {}}, generations: 2, kills: 2}},
		{"five hosts", true, game{hosts: 5, ballots: []int{1, 1, 0, 0, 0}, suspects: [][]int{{0b11000}, {0b00001}, {}, {}, {}}, generations: 2}},
		{"three hosts, two generations", true, game{hosts: 3, ballots: []int{1, 1, 0}, suspects: pair, generations: 3, kills: 1}},
	})
}

// A rank that gets its question answered has not been left behind when it asked.
func TestExploreConfirm(t *testing.T) {
	explored(t, []named{
		{"three hosts", false, game{hosts: 3, ballots: []int{1, 0, 0}, suspects: [][]int{{0b100}, {}, {}}, generations: 2, asks: []int{0, 0, 2}}},
		{"one leaves", false, game{hosts: 3, ballots: []int{1, 0, 0}, suspects: [][]int{{0b100}, {}, {}}, generations: 2, leaves: []int{0, 1}, asks: []int{0, 0, 2}}},
		{"five hosts", true, game{hosts: 5, ballots: []int{1, 1, 0, 0, 0}, from: []uint64{1, 2, 0, 0, 0}, suspects: [][]int{{0b11000}, {0b00001}, {}, {}, {}}, generations: 3, asks: []int{1, 0, 0, 0, 0}}},
		{"two proposers", true, game{hosts: 3, ballots: []int{1, 1, 0}, suspects: pair, generations: 3, kills: 1, asks: []int{1, 1, 1}}},
	})
}

// Votes end wherever enough hosts can talk: after a death, a cut between two of three, and a
// cut that heals.
func TestExploreVotesEnd(t *testing.T) {
	explored(t, []named{
		{"two hosts", false, game{hosts: 2, ballots: []int{3, 2}, generations: 2, kills: 1, ends: true}},
		{"three hosts", false, game{hosts: 3, ballots: []int{3, 2, 0}, generations: 2, kills: 1, ends: true}},
		{"a cut", false, game{hosts: 3, ballots: []int{2, 3, 0}, generations: 2, ends: true, cuts: [][2]int{{0, 1}}}},
		{"a rank dies", false, game{hosts: 2, ballots: []int{3, 2}, generations: 2, kills: 1, ends: true, restless: true}},
		{"two leave", false, game{hosts: 3, ballots: []int{0, 0, 3}, generations: 2, leaves: []int{0, 1}, ends: true, restless: true}},
		{"a cut that heals", true, game{hosts: 3, ballots: []int{3, 3, 0}, generations: 2, ends: true, cuts: [][2]int{{0, 1}}, heals: true}},
		{"silence", true, game{hosts: 3, ballots: []int{3, 3, 0}, generations: 2, ends: true, cuts: [][2]int{{0, 1}, {0, 2}}}},
	})
}

// What a host takes for certain has to be: where half of the hosts is enough because the
// others are dead, a refusal that a firewall sends for a host that lives lets both sides go
// on. It is why rules between hosts must drop packets, and not reject them.
func TestExploreRefusalsMustBeTrue(t *testing.T) {
	c := game{hosts: 2, ballots: []int{1, 1}, generations: 2, lies: 2}
	if r := c.run(); !strings.Contains(r.Failure, "two views of generation 2") {
		t.Errorf("two views were expected: %v", r)
	}
}

// named is a case with its name; large ones take minutes.
type named struct {
	name  string
	large bool
	game
}

func explored(t *testing.T, cases []named) {
	for _, c := range cases {
		explore.Case(t, c.name, c.large, func(t *testing.T) { explore.Must(t, c.game.run()) })
	}
}

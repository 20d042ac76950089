package graphs

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/graph/topo"

	"malt/internal/say"
)

// DisconnectedError says that in a graph some rank cannot reach some other, not
// even through third ranks.
type DisconnectedError struct {
	Graph string // its spec
	Size  int
	// Groups are the largest sets of ranks that all reach each other, each in
	// ascending order, the one with the lowest rank first.
	Groups [][]int
	// Deaf is the position in Groups of a group that the others never reach, if
	// groups are joined one way; -1 if no edge joins any two groups.
	Deaf int
}

func (e *DisconnectedError) Error() string { return e.said().Error() }

func (e *DisconnectedError) Unwrap() error { return e.said() }

func (e *DisconnectedError) said() *say.Error {
	name, _, _ := strings.Cut(e.Graph, ":")
	remedy := ""
	if e.Deaf >= 0 {
		remedy = fmt.Sprintf(" let another rank, such as %d, send to rank %d,", e.Groups[(e.Deaf+1)%len(e.Groups)][0], e.Groups[e.Deaf][0])
	}
	return say.Errorf(nil, "graph %s of %d ranks is not strongly connected, so the replicas would drift apart", name, e.Size).
		At("%s", e.finding()).Try("Use halton, which always is,%s or accept it with allow_disconnected.", remedy)
}

// finding says what is wrong, and with which ranks.
func (e *DisconnectedError) finding() string {
	switch {
	case e.Deaf < 0:
		return e.short() + ", " + groups(e.Groups, 2)
	case len(e.Groups[e.Deaf]) == 1:
		return fmt.Sprintf("rank %d receives from no other rank", e.Groups[e.Deaf][0])
	}
	return fmt.Sprintf("ranks %s receive from no other rank", phrase(e.Groups[e.Deaf], "", " "))
}

// short is finding in a line that fits below a drawing.
func (e *DisconnectedError) short() string {
	if e.Deaf < 0 {
		return fmt.Sprintf("it splits into %d groups that exchange nothing", len(e.Groups))
	}
	return e.finding()
}

// CheckConnected returns a *DisconnectedError unless what any rank sends can
// reach every other rank, directly or through others. On other graphs averaging
// does not bring the replicas together.
func (g *Graph) CheckConnected() error {
	if e := g.disconnected(); e != nil {
		return e
	}
	return nil
}

func (g *Graph) disconnected() *DisconnectedError {
	parts := g.components()
	if len(parts) <= 1 {
		return nil
	}
	return &DisconnectedError{Graph: g.spec, Size: g.size, Groups: parts, Deaf: g.deaf(parts)}
}

// components returns the strongly connected components, in the order of
// DisconnectedError.Groups.
func (g *Graph) components() [][]int {
	if g.receivers == nil {
		return g.residues()
	}
	var parts [][]int
	for _, nodes := range topo.TarjanSCC(newDirected(g)) {
		part := make([]int, len(nodes))
		for i, n := range nodes {
			part[i] = int(n.ID())
		}
		slices.Sort(part)
		parts = append(parts, part)
	}
	slices.SortFunc(parts, func(a, b []int) int { return a[0] - b[0] })
	return parts
}

// residues are the components of a flat graph. Steps by the offsets reach
// exactly the multiples of their common divisor with N, in both directions,
// since going round is also going back.
func (g *Graph) residues() [][]int {
	d := g.size
	for _, o := range g.offsets {
		d = gcd(d, o)
	}
	parts := make([][]int, d)
	for rank := range g.size {
		parts[rank%d] = append(parts[rank%d], rank)
	}
	return parts
}

func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// deaf finds a component that no edge enters, if any edge joins components: as
// they cannot form a cycle, there is one.
func (g *Graph) deaf(parts [][]int) int {
	if g.receivers == nil {
		return -1
	}
	part := make([]int, g.size)
	for i, p := range parts {
		for _, rank := range p {
			part[rank] = i
		}
	}
	entered := make([]bool, len(parts))
	joined := false
	for from, list := range g.receivers {
		for _, to := range list {
			if part[from] != part[to] {
				entered[part[to]] = true
				joined = true
			}
		}
	}
	if !joined {
		return -1
	}
	return slices.Index(entered, false)
}

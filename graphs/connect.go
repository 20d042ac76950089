package graphs

import (
	"fmt"
	"slices"
	"strings"

	"gonum.org/v1/gonum/graph/topo"
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

func (e *DisconnectedError) Error() string {
	name, _, _ := strings.Cut(e.Graph, ":")
	var b strings.Builder
	fmt.Fprintf(&b, "graphs: %s of %d ranks is not strongly connected: ", name, e.Size)
	if e.Deaf < 0 {
		fmt.Fprintf(&b, "it falls into %d groups that never exchange anything, %s", len(e.Groups), groups(e.Groups))
	} else {
		deaf := e.Groups[e.Deaf]
		noun, verb := "ranks", "get"
		if len(deaf) == 1 {
			noun, verb = "rank", "gets"
		}
		fmt.Fprintf(&b, "%s %s never %s anything from the other ranks", noun, ranks(deaf), verb)
	}
	b.WriteString(", so the replicas would not agree; use halton, which is connected for any number of ranks")
	if e.Deaf >= 0 {
		from := e.Groups[(e.Deaf+1)%len(e.Groups)]
		fmt.Fprintf(&b, ", or let another rank, such as %d, send to rank %d", from[0], e.Groups[e.Deaf][0])
	}
	b.WriteString(", or accept it with allow_disconnected=true")
	return b.String()
}

func groups(list [][]int) string {
	const most = 4
	var b strings.Builder
	for i, group := range list[:min(len(list), most)] {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "{%s}", ranks(group))
	}
	if n := len(list) - most; n > 0 {
		fmt.Fprintf(&b, " and %d more", n)
	}
	return b.String()
}

// CheckConnected returns a *DisconnectedError unless what any rank sends can
// reach every other rank, directly or through others. On other graphs averaging
// does not bring the replicas together.
func (g *Graph) CheckConnected() error {
	parts := g.components()
	if len(parts) <= 1 {
		return nil
	}
	return &DisconnectedError{Graph: g.spec, Size: g.size, Groups: parts, Deaf: g.deaf(parts)}
}

// components returns the strongly connected components, in the order of
// DisconnectedError.Groups.
func (g *Graph) components() [][]int {
	var parts [][]int
	if g.receivers == nil {
		return g.residues()
	}
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

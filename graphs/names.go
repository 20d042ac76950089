package graphs

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// family is one line of the table of graphs. A new graph is one function and
// one line here.
type family struct {
	name  string
	usage string // how to write its argument; "" if it takes none
	build func(size int, arg string) (*Graph, error)
}

func families() []family {
	return []family{
		{"all", "", flat(allOffsets)},
		{"ring", "", flat(ringOffsets)},
		{"chord", "", flat(chordOffsets)},
		{"halton", "", flat(haltonOffsets)},
		{"halton-paper", "", flat(haltonPaperOffsets)},
		{"random", "random:K or random:K:SEED, K receivers per rank", random},
		{"hypercube", "", hypercube},
		{"star", "", star},
		{"one-peer", "", onePeer},
		{"lists", "lists:1,2/2/0, the receivers of rank 0, of rank 1, and so on", parseLists},
	}
}

// Names returns the names that a spec may begin with.
func Names() []string {
	var names []string
	for _, f := range families() {
		names = append(names, f.name)
	}
	return names
}

func find(name string) (family, bool) {
	all := families()
	i := slices.IndexFunc(all, func(f family) bool { return f.name == name })
	if i < 0 {
		return family{}, false
	}
	return all[i], true
}

// unknown is the error for a name that is not in the table.
func unknown(name string) error {
	return fmt.Errorf("graphs: unknown graph %s; did you mean %q? (known: %s)",
		quote(name), nearest(name), strings.Join(Names(), " "))
}

// elsewhere holds names that other systems use for the same graphs. They are
// hints only: one graph has one name.
func elsewhere(name string) string {
	switch name {
	case "full", "complete", "fully-connected", "all-to-all", "mesh", "dense":
		return "all"
	case "exponential", "exp", "expander":
		return "chord"
	case "parameter-server", "ps", "server", "hub":
		return "star"
	case "cycle", "circle":
		return "ring"
	case "one-peer-exponential", "dynamic":
		return "one-peer"
	case "butterfly", "cube":
		return "hypercube"
	case "custom", "list", "edges":
		return "lists"
	}
	return ""
}

// nearest returns the known name closest to what was written; among equals the
// one that begins alike.
func nearest(name string) string {
	name = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(name)), "_", "-")
	if hint := elsewhere(name); hint != "" {
		return hint
	}
	if len(name) > 40 { // no name is near; bounds the work
		name = name[:40]
	}
	return slices.MinFunc(Names(), func(a, b string) int {
		return cmp.Or(distance(name, a)-distance(name, b), alike(name, b)-alike(name, a))
	})
}

// alike counts the bytes with which two words begin in common.
func alike(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// distance counts the inserted, removed and changed bytes between two words.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

package graphs

import "slices"

// family is one line of the table of graphs. A new graph is one function and
// one line here.
type family struct {
	name     string
	usage    string // how to write its argument; "" if it takes none
	build    func(size int, arg string) (*Graph, error)
	optional bool // the argument
}

func families() []family {
	return []family{
		{"all", "", flat(allOffsets), false},
		{"ring", "", flat(ringOffsets), false},
		{"chord", "", flat(chordOffsets), false},
		{"halton", "", flat(haltonOffsets), false},
		{"halton-paper", "", flat(haltonPaperOffsets), false},
		{"random", "random:K or random:K:SEED, K receivers per rank", random, false},
		{"hypercube", "", hypercube, false},
		{"star", "", star, false},
		{"butterfly", "butterfly, butterfly:AxB, ranks per group in each stage, or butterfly:50MB/0.21, a rank's rows and their share", butterfly, true},
		{"shards", "shards, shards:K or shards:K/D: K ranks keep a part each, and send it on to D each", shards, true},
		{"one-peer", "", onePeer, false},
		{"lists", "lists:1,2/2/0, the receivers of rank 0, of rank 1, and so on", parseLists, false},
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

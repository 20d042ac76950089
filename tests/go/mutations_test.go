package tests

import (
	"path"
	"slices"
	"strings"
)

// mutation is a protocol step left out or changed.
type mutation struct {
	line   string // what is left out or changed
	in     string // the function, as in rdma/box.Writer.Begin, in which the pattern old, which fits once, becomes new
	old    string
	new    string
	caught string // test that must fail
	how    string // part of its message
	pkg    string // of that test, if not the function's or the one above that
	big    bool   // it is a case that takes minutes where it passes
}

// mutations are the steps of the protocols. Each was found to matter by a model
// check; here the real code is shown to need it, and the search to notice.
var mutations = slices.Concat(ofBoxes, ofBells, ofCalls, ofChanges, ofStages, ofShards, ofShardsThatGoOn, ofShardedRows, ofRows, ofPlans, ofGraphs, ofFilters, ofAverages, ofExchanges, ofAllReduces, ofSurvivors, ofSettling, ofReplays, ofVotes, ofReturns, ofPlacing)

// testedBy has a package test them, but for those that name one.
func testedBy(pkg string, list []mutation) []mutation {
	for i := range list {
		if list[i].pkg == "" {
			list[i].pkg = pkg
		}
	}
	return list
}

// tested is the package of the test.
func (m *mutation) tested() string {
	if m.pkg != "" {
		return m.pkg
	}
	dir, _ := m.place()
	for !slices.Contains(explored, dir) {
		if dir == "." {
			panic(m.in + ": no package around it is explored; say which one is, in pkg")
		}
		dir = path.Dir(dir)
	}
	return dir
}

// place is the folder of the package, and the function.
func (m *mutation) place() (dir, name string) {
	base := strings.LastIndexByte(m.in, '/') + 1
	pkg, name, _ := strings.Cut(m.in[base:], ".")
	return m.in[:base] + pkg, name
}

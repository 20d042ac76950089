package tests

import "slices"

// mutation is a protocol step left out or changed.
type mutation struct {
	line   string // what is left out or changed
	file   string // in which the text old, which occurs once, within a function, becomes new
	old    string
	new    string
	caught string // test of the file's package that must fail
	how    string // part of its message
	pkg    string // of that test, if not the file's
}

// mutations are the steps of the protocols. Each was found to matter by a model
// check; here the real code is shown to need it, and the search to notice.
var mutations = slices.Concat(ofBoxes, ofBells, ofCalls, ofAverages, ofExchanges, ofAllReduces)

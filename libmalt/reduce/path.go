package reduce

import (
	"os"
	"slices"
	"sync"

	"malt/internal/say"
)

// path is a set of kernels; a larger one needs a newer CPU.
type path uint8

const (
	pathGo path = iota
	pathAVX2
	pathAVX512
)

var pathNames = [...]string{pathGo: "go", pathAVX2: "avx2", pathAVX512: "avx512"}

func (p path) String() string { return pathNames[p] }

// current is the path that Fold takes. The environment is read once.
var current = sync.OnceValue(func() path { return choose(os.Getenv("MALT_KERNEL"), best()) })

// CheckPath refuses a value of MALT_KERNEL that Path does not know.
func CheckPath(name string) error {
	if name == "" || slices.Contains(pathNames[:], name) {
		return nil
	}
	return say.Unknown(nil, "MALT_KERNEL", name, pathNames[:]...)
}

// Path says which kernels run: "avx512", "avx2" or "go". The best that this CPU
// and its operating system have, unless the variable MALT_KERNEL asks for less.
// Under the race detector, which does not see what C reads, it is "go".
func Path() string { return current().String() }

// choose returns the path that a value of MALT_KERNEL asks for, and has where it
// is not known or not available.
func choose(name string, has path) path {
	if p := slices.Index(pathNames[:], name); p >= 0 {
		return min(path(p), has)
	}
	return has
}
